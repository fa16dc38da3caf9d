import { type ChildProcess, spawn } from 'node:child_process'
import { type FSWatcher, readdirSync, watch } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { generate } from '../scripts/generate/generate.ts'
import { sayGenerated } from './generate.ts'
import { examples, type Shell } from './shell.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CONTRACTS = ['openapi.yaml', 'asyncapi.yaml']
/** What the service is made of. */
const CODE = [
  'auth',
  'cli',
  'docs',
  'generated',
  'handlers',
  'records',
  'server',
  'web',
  'webhooks',
]
/** And not what editors keep beside it. */
const CODE_FILE = /^[^.#].*\.(ts|js|cjs|mjs|json|css|svg|md)$/
/** Editors write a file in several steps, and the generator several files. */
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
          await serveWatched(shell)
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
        shell.print(
          `${sayGenerated(result)}\nGenerated in ${Math.round(performance.now() - begun)} ms.`,
        )
      known = orphans
    } catch (error) {
      console.error(error instanceof Error ? error.message : error)
    }
  }
}

/** Calls `work` once things have been quiet for a moment, never twice at a time. */
function settled(work: () => Promise<void>): () => void {
  let timer: NodeJS.Timeout | undefined
  let running = Promise.resolve()
  return () => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      running = running.then(work)
    }, SETTLE_MS)
  }
}

/** Watches the two files, and which handlers there are. */
function watchContract(work: () => Promise<void>): FSWatcher[] {
  const soon = settled(work)
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

/** Watches each folder with code by itself. Node's own `--watch` holds on to a file that has been replaced, and so misses all that follows. */
function watchCode(change: () => void): { close(): void } {
  const watchers = new Map<string, FSWatcher>()
  const add = (folder: string): void => {
    if (watchers.has(folder)) return
    const watcher = watch(folder, (event, file) => {
      // A new folder, perhaps.
      if (event === 'rename') addAllBelow(folder)
      if (file !== null && CODE_FILE.test(file)) change()
    })
    watchers.set(folder, watcher)
    watcher.on('error', () => watcher.close())
    watcher.on('close', () => watchers.delete(folder))
  }
  const addAllBelow = (folder: string): void => {
    try {
      add(folder)
      for (const entry of readdirSync(folder, { withFileTypes: true }))
        if (entry.isDirectory()) addAllBelow(join(folder, entry.name))
    } catch (error) {
      // Gone again, and its watcher with it.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      watchers.get(folder)?.close()
    }
  }
  for (const name of CODE) addAllBelow(join(ROOT, name))
  return {
    close() {
      for (const watcher of watchers.values()) watcher.close()
    },
  }
}

/** `muster serve`, and again at each change of code. Ends when it is told to. */
async function serveWatched(shell: Shell): Promise<void> {
  let service = startService()
  let isStopping = false
  const restart = settled(async () => {
    if (isStopping) return
    shell.print('The code has changed: starting again.')
    // Unlike SIGTERM, nobody handles this one: what is in flight need not be waited for, since nothing is lost by a crash.
    await stopService(service, 'SIGHUP')
    if (!isStopping) service = startService()
  })
  const watcher = watchCode(restart)
  const signal = await new Promise<NodeJS.Signals>((resolve) => {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, resolve)
  })
  isStopping = true
  watcher.close()
  await stopService(service, signal)
}

function startService(): ChildProcess {
  const args = [join(ROOT, 'bin/muster.js'), 'serve']
  const service = spawn(process.execPath, args, {
    cwd: process.cwd(),
    stdio: 'inherit',
    env: { ...process.env, NODE_ENV: 'development' },
  })
  service.on('error', (error) =>
    console.error(`${process.execPath} cannot be run: ${error.message}`),
  )
  service.on('exit', (status) => {
    if (status !== null && status > 0)
      console.error(`The service ended with ${status}. Waiting for file changes.`)
  })
  return service
}

async function stopService(service: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (service.exitCode !== null || service.signalCode !== null) return
  const ended = new Promise((resolve) => service.once('exit', resolve))
  service.kill(signal)
  await ended
}
