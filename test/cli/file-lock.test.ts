/** The lock on a file that processes take in turn. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { newMuster } from './muster.ts'

const USER = fileURLToPath(new URL('./file-lock-user.ts', import.meta.url))
const PROCESSES = 8
/** High, so that the processes overlap although they do not start at once. */
const TIMES = '300'

it('processes that take one lock again and again each get it within five seconds', async () => {
  await using muster = await newMuster()
  const file = join(muster.dataDir, 'setup.lock')

  const users = Array.from({ length: PROCESSES }, () =>
    promisify(execFile)(process.execPath, [USER, file, TIMES]),
  )

  await expect(Promise.all(users)).resolves.toHaveLength(PROCESSES)
})
