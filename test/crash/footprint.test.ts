/** What a start of the service loads, and how it limits its memory. `npm run bench -- --only
 *  footprint` measures. */
import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { newMuster } from '../cli/muster.ts'
import { startServing } from '../cli/serving.ts'
import { newDatabase } from '../helpers.ts'

const database = inject('database')
/** Modules that a start must not load: parts of their URLs. */
const NOT_AT_THE_START = [
  '/node_modules/highlight.js/',
  '/node_modules/markdown-it/',
  '/node_modules/minisearch/',
  '/node_modules/yaml/',
  '/web/docs/pages/',
]

/** The modules of scripts/ that a start loads: one parses JSON, one compares hashes of the contracts. */
const TOOLS_AT_THE_START = ['json.ts', 'source-hashes.ts']

/** The URL of a module that appends the URL of each loaded module to a file, in every thread. */
const recordModules = (file: string): string =>
  `data:text/javascript,${encodeURIComponent(`
  import { appendFileSync } from 'node:fs'
  import { registerHooks } from 'node:module'
  registerHooks({
    load(url, context, nextLoad) {
      appendFileSync(${JSON.stringify(file)}, url + '\\n')
      return nextLoad(url, context)
    },
  })`)}`

test('serve: loads no page, no tool and no unused database at its start, and limits its heap', async () => {
  await using muster = await newMuster()
  await using records = await newDatabase()
  const file = join(muster.dataDir, 'modules')
  const { process: service, ended } = await startServing(muster, {
    environment: { ...records.environment, NODE_OPTIONS: `--import="${recordModules(file)}"` },
  })
  const command = await readFile(`/proc/${service.pid}/cmdline`, 'utf8')
  service.kill('SIGTERM')
  expect(await ended).toMatchObject({ status: 0 })
  expect(command.split('\0')).toContainEqual(expect.stringMatching(/^--max-semi-space-size=/))

  const modules = (await readFile(file, 'utf8')).split('\n')
  const loaded = (place: string): boolean => modules.some((url) => url.includes(place))
  expect(loaded('/server/main.ts')).toBe(true)
  expect(loaded('/node_modules/@electric-sql/pglite/')).toBe(database === 'sqlite')
  expect(NOT_AT_THE_START.filter(loaded)).toEqual([])
  const tools = modules.filter((url) => url.includes('/scripts/')).map((url) => basename(url))
  expect(tools.sort()).toEqual(TOOLS_AT_THE_START)
})
