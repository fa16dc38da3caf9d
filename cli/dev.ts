import { spawn } from 'node:child_process'
import { type FSWatcher, watch } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { generate } from '../scripts/generate.ts'
import { sayGenerated } from './generate.ts'
import { examples, type Shell } from './shell.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CONTRACTS = ['openapi.yaml', 'asyncapi.yaml']
/** Editors write a file in several steps. */
const SETTLE_MS = 50

export function addDev(program: Command, shell: Shell): void {
  program
    .command('dev')
    .description(
      'Run the service for its developers: a change of openapi.yaml or asyncapi.yaml generates again, a change of code starts it again, and a mistake in either is shown and waited for.',
    )
    .addHelpText('after', examples('muster dev', 'PORT=8080 muster dev'))
    .action(
      shell.action(async (): Promise<undefined> => {
        const regenerate = newGenerator(shell)
        await regenerate()
        const watchers = watchContract(regenerate)
        try {
          await serveWatched()
        } finally {
          for (const watcher of watchers) watcher.close()
        }
      }),
    )
}

/** What is wrong with the contract is shown; the service goes on with what was generated before. */
function newGenerator(shell: Shell): () => Promise<void> {
  let known = ''
  return async () => {
    const begun = performance.now()
    try {
      const result = await generate({ check: false })
      const orphans = result.orphans.join('\n')
      if (result.written.length + result.removed.length > 0 || orphans !== known)
        shell.print(`${sayGenerated(result)}\nGenerated in ${Math.round(performance.now() - begun)} ms.`)
      known = orphans
    } catch (error) {
      console.error(error instanceof Error ? error.message : error)
    }
  }
}

/** Watches the two files, and which handlers there are. */
function watchContract(work: () => Promise<void>): FSWatcher[] {
  let timer: NodeJS.Timeout | undefined
  let running = Promise.resolve()
  const soon = (): void => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      running = running.then(work)
    }, SETTLE_MS)
  }
  return [
    // Their folder: an editor may put a new file in the place of the old one.
    watch(ROOT, (_, file) => {
      if (file !== null && CONTRACTS.includes(file)) soon()
    }),
    watch(join(ROOT, 'handlers'), (event) => {
      if (event === 'rename') soon()
    }),
  ]
}

/** `muster serve` under Node's own watcher, which knows every module that was loaded. Ends when it is told to. */
function serveWatched(): Promise<void> {
  // Unlike SIGTERM, nobody handles this one: what is in flight need not be waited for, since nothing is lost by a crash.
  const args = ['--watch', '--watch-preserve-output', '--watch-kill-signal=SIGHUP', join(ROOT, 'bin/muster.js'), 'serve']
  const child = spawn(process.execPath, args, { cwd: process.cwd(), stdio: 'inherit', env: { ...process.env, NODE_ENV: 'development' } })
  const stop = (signal: NodeJS.Signals): void => void child.kill(signal)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop)
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', () => resolve())
  })
}
