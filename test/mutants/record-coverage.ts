/** Writes how often a test file reaches each mutant. */
import { writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { afterAll, expect } from 'vitest'
import type {} from './contract-run.ts'

const folder = process.env.MUTANT_COVERAGE

afterAll(() => {
  if (folder === undefined) return
  const file = relative(process.cwd(), expect.getState().testPath ?? '')
  const counts = globalThis.__stryker__?.mutantCoverage?.static ?? {}
  const text = JSON.stringify({ file, counts })
  writeFileSync(join(folder, `${file.replaceAll('/', '+')}.json`), text)
})
