import { type ChildProcess, spawn } from 'node:child_process'
import { type FSWatcher, readdirSync, watch } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { generate } from '../scripts/generate/generate.ts'
import { formatRemark } from '../scripts/report/result.ts'
import { formatGenerated } from './generate.ts'
import { examples, type Shell } from './shell.ts'
import { nextStopSignal } from './stop-signals.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CONTRACTS = ['openapi.yaml', 'asyncapi.yaml']
/** Folders whose files the service reads. */
const CODE_FOLDERS = [
  'auth',
  'cli',
  'docs',
  'generated',
  'handlers',
  'operations',
  'records',
  'scripts',
  'server',
  'web',
  'webhooks',
]
/** Code files, without the temporary files of editors. */
const CODE_FILE = /^[^.#].*\.(ts|js|cjs|mjs|json|css|svg|md)$/
/** A change is complete when no other follows within this time: editors write a file in several
 *  steps, and the generator writes several files. */
const SETTLE_MS = 50

export function addCommand(program: Command, shell: Shell): void {
  program
    .command('dev')
    .description(
      'Run the service in development. A change of openapi.yaml or asyncapi.yaml runs the generator, and a ' +
        'change of code restarts the service. After an error, the next change tries again.',
    )
    .option('--json', 'print the document of "muster serve --json" at each start, and nothing else')
    .addHelpText(
      'after',
      `${examples('muster dev', 'PORT=8080 muster dev')}
Ctrl-C stops the service and the command.
`,
    )
    .action(
      shell.action(async ({ json = false }: { json?: boolean }): Promise<undefined> => {
        const print = json ? console.error : shell.print
        const regenerate = newGenerator(print)
        await regenerate()
        const watchers = watchContract(regenerate)
        try {
          await serveWatched(print, json ? ['--json'] : [])
        } finally {
          for (const watcher of watchers) watcher.close()
        }
      }),
    )
}

/** Returns a function that runs the generator. The function prints errors and does not throw: the
 *  service continues with the files that the generator wrote last. */
function newGenerator(print: (text: string) => void): () => Promise<void> {
  let printedRemarks = ''
  return async () => {
    const startedAt = performance.now()
    try {
      const result = await generate({ check: false })
      const remarks = [...result.orphans, ...result.missingColumns].map(formatRemark).join('\n')
      if (result.written.length + result.removed.length > 0 || remarks !== printedRemarks)
        print(
          `${formatGenerated(result)}\nGenerated in ${Math.round(performance.now() - startedAt)} ms.`,
        )
      printedRemarks = remarks
    } catch (error) {
      console.error(error instanceof Error ? error.message : error)
    }
  }
}

/** Returns a function that starts `work` when `SETTLE_MS` have passed since its last call. Runs of
 *  `work` never overlap. */
function debounce(work: () => Promise<void>): () => void {
  let timer: NodeJS.Timeout | undefined
  let running = Promise.resolve()
  return () => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      running = running.then(work)
    }, SETTLE_MS)
  }
}

/** Watches the two contracts, and which handlers exist: the generator lists the handlers. */
function watchContract(work: () => Promise<void>): FSWatcher[] {
  const schedule = debounce(work)
  return [
    // Watch the folder: an editor may replace the file.
    watch(ROOT, (_, file) => {
      if (file !== null && CONTRACTS.includes(file)) schedule()
    }),
    watch(join(ROOT, 'handlers'), (event) => {
      if (event === 'rename') schedule()
    }),
  ]
}

/** Watches the code: the .ts files in the root folder, and CODE_FOLDERS with their subfolders.
 *  Node's own `--watch` stops seeing changes to a file after an editor replaces it. */
function watchCode(onChange: () => void): { close(): void } {
  const watchers = new Map<string, FSWatcher>()
  const watchFolder = (folder: string): void => {
    if (watchers.has(folder)) return
    const watcher = watch(folder, (event, file) => {
      // There may be a new folder.
      if (event === 'rename') watchAllBelow(folder)
      if (file !== null && CODE_FILE.test(file)) onChange()
    })
    watchers.set(folder, watcher)
    watcher.on('error', () => watcher.close())
    watcher.on('close', () => watchers.delete(folder))
  }
  const watchAllBelow = (folder: string): void => {
    try {
      watchFolder(folder)
      for (const entry of readdirSync(folder, { withFileTypes: true }))
        if (entry.isDirectory()) watchAllBelow(join(folder, entry.name))
    } catch (error) {
      // The folder was deleted meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      watchers.get(folder)?.close()
    }
  }
  for (const name of CODE_FOLDERS) watchAllBelow(join(ROOT, name))
  const root = watch(ROOT, (_, file) => {
    if (file?.endsWith('.ts')) onChange()
  })
  return {
    close() {
      root.close()
      for (const watcher of watchers.values()) watcher.close()
    },
  }
}

/** Runs `muster serve` and restarts it at each change of code, until SIGINT or SIGTERM. */
async function serveWatched(print: (text: string) => void, options: string[]): Promise<void> {
  let service = startService(options)
  let isStopping = false
  const restart = debounce(async () => {
    if (isStopping) return
    print('Code changed. Restarting the service.')
    // The service has no handler for SIGHUP, so it ends at once. That is safe: a crash loses no
    // data.
    await stopService(service, 'SIGHUP')
    if (!isStopping) service = startService(options)
  })
  const watcher = watchCode(restart)
  const signal = await nextStopSignal()
  isStopping = true
  watcher.close()
  await stopService(service, signal)
}

function startService(options: string[]): ChildProcess {
  const args = [join(ROOT, 'bin/muster.js'), 'serve', '--allow-stale', ...options]
  const service = spawn(process.execPath, args, {
    cwd: process.cwd(),
    stdio: 'inherit',
    env: { DRAIN_MS: '0', ...process.env, NODE_ENV: 'development' },
  })
  service.on('error', (error) => console.error(`Cannot run ${process.execPath}: ${error.message}`))
  service.on('exit', (status) => {
    if (status !== null && status > 0)
      console.error(`The service exited with status ${status}. Waiting for file changes.`)
  })
  return service
}

async function stopService(service: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (service.exitCode !== null || service.signalCode !== null) return
  const ended = new Promise((resolve) => service.once('exit', resolve))
  service.kill(signal)
  await ended
}
