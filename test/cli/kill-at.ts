/** Loaded into a command with `--import`: kills it just before the step number KILL_AT. A step is a
 *  change of a file or the commit of a transaction. */
import fs from 'node:fs'
import { createRequire, syncBuiltinESMExports } from 'node:module'

let step = 0
function countStep(): void {
  step++
  if (step === Number(process.env.KILL_AT)) process.kill(process.pid, 'SIGKILL')
}

// biome-ignore lint/suspicious/noExplicitAny: the functions have different signatures.
function countCalls(owner: any, name: string, counts: (self: any) => boolean): void {
  const original = owner[name]
  owner[name] = function (...args: unknown[]) {
    if (counts(this)) countStep()
    return original.apply(this, args)
  }
}

for (const name of ['writeFileSync', 'renameSync', 'linkSync', 'fsyncSync'])
  countCalls(fs, name, () => true)
countCalls(fs.promises, 'link', () => true)
syncBuiltinESMExports()

const sqlite3 = createRequire(import.meta.url)('sqlite3')
for (const name of ['run', 'all'])
  countCalls(sqlite3.Statement.prototype, name, ({ sql }) => sql.startsWith('COMMIT'))
