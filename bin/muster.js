#!/usr/bin/env node
// Starts cli/main.ts on the right version of Node.js, with the settings of --config. This file is
// plain JavaScript, so that older versions can run it.
import { spawn } from 'node:child_process'
import { realpathSync } from 'node:fs'
import module from 'node:module'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'
import v8 from 'node:v8'

/** The first version of Node.js with argon2 in node:crypto and type stripping by default. */
const MIN_VERSION = [24, 7]
const EXIT_DELAY_MS = 500
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP']
/** Less memory for `serve`: by default V8 lets the young generation grow to 128 MB, and the old one
 *  to four times its live objects. Embedded mode has the lower limits, because its PostgreSQL needs
 *  memory too. */
const SERVE_OPTIONS = ['--max-semi-space-size=16', '--heap-growing-percent=100']
const EMBEDDED_SERVE_OPTIONS = ['--max-semi-space-size=8', '--heap-growing-percent=50']
/** Less memory for `serve`: by default glibc has 8 arenas for each processor, and keeps large
 *  blocks that were freed. */
const SERVE_ENVIRONMENT = { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '1048576' }

/** These commands run for a few seconds. By default V8 optimizes their functions and collects
 *  garbage on further threads, which takes more processor time than it saves. */
const BRIEF_COMMANDS = ['generate', 'lint']
const BRIEF_FLAGS = ['--no-turbofan', '--no-parallel-scavenge', '--no-concurrent-marking']

const [major, minor] = process.versions.node.split('.').map(Number)
const isSupported = major > MIN_VERSION[0] || (major === MIN_VERSION[0] && minor >= MIN_VERSION[1])
const hasConfigFile = isSupported && (await applyConfigFile())
// By default, libuv has four threads for the whole process. SQLite alone can use five, one for each
// connection.
process.env.UV_THREADPOOL_SIZE ??= '16'

const isServe = process.argv[2] === 'serve'

// Node.js reads some variables of the configuration file only at its start, for example
// NODE_EXTRA_CA_CERTS.
if (isSupported && (isServe || hasConfigFile) && canReplaceProcess()) {
  process.execve(process.execPath, [process.execPath, ...nodeArguments()], {
    ...(isServe && SERVE_ENVIRONMENT),
    ...process.env,
  })
} else if (isSupported) {
  exitWithParent()
  // The cache halves the duration of a short command. Worker threads read the variable. Node
  // ignores a folder that it cannot write.
  process.env.NODE_COMPILE_CACHE ??= fileURLToPath(
    new URL('../node_modules/.cache/muster', import.meta.url),
  )
  module.enableCompileCache()
  if (BRIEF_COMMANDS.includes(process.argv[2]))
    for (const flag of BRIEF_FLAGS) v8.setFlagsFromString(flag)
  const { main } = await import('../cli/main.ts')
  process.exitCode = await main(process.argv.slice(2), process.env)
  // Exits even if handles are still open, for example idle connections.
  setTimeout(() => process.exit(), EXIT_DELAY_MS).unref()
} else {
  const node = installedNode()
  if (node === undefined || node === realpathSync(process.execPath)) {
    const required = MIN_VERSION.join('.')
    console.error(
      `Muster needs Node.js ${required} or newer. This is Node.js ${process.versions.node}.`,
    )
    console.error('Run "npm ci" in the folder of Muster to install the right version.')
    process.exit(1)
  }
  runUnder(node)
}

/** Replaces `--config FILE` in the arguments with variables in the environment. Returns false if the
 *  arguments name no file. */
async function applyConfigFile() {
  if (!process.argv.some((arg) => arg.startsWith('--config'))) return false
  const { takeConfigFile } = await import('../cli/config-file.ts')
  try {
    const taken = takeConfigFile(process.argv.slice(2), process.env)
    if (taken === undefined) return false
    Object.assign(process.env, taken.variables)
    process.argv.splice(2, Number.POSITIVE_INFINITY, ...taken.args)
    return true
  } catch (error) {
    console.error(error.message)
    process.exit(1)
  }
}

/** The arguments of Node.js that run this command again. */
function nodeArguments() {
  const serveOptions = process.env.DATABASE_URL ? SERVE_OPTIONS : EMBEDDED_SERVE_OPTIONS
  const options = isServe ? serveOptions : []
  return [...options, ...process.execArgv, fileURLToPath(import.meta.url), ...process.argv.slice(2)]
}

/** Whether this process can start Node.js again in its place, with the options and the environment
 *  of `serve`, which take effect only at a start. The process ID stays, and no parent is needed.
 *  False on Windows: there `serve` runs without the options. Also false if this process has an IPC
 *  channel: the channel would be lost. */
function canReplaceProcess() {
  const nodeOptions = [...process.execArgv, process.env.NODE_OPTIONS].join(' ')
  return (
    typeof process.execve === 'function' &&
    process.platform !== 'win32' &&
    !process.channel &&
    // An earlier run of this file, or the operator, sets the options together with this one.
    !nodeOptions.includes('--max-semi-space-size')
  )
}

/** The path of the Node.js that "npm ci" installs, or undefined. */
function installedNode() {
  const { platform, arch } = process
  const prefix = platform === 'darwin' && arch === 'arm64' ? 'node-bin' : 'node'
  const [system, program] = platform === 'win32' ? ['win', 'node.exe'] : [platform, 'node']
  try {
    const { resolve } = module.createRequire(import.meta.url)
    return realpathSync(resolve(`${prefix}-${system}-${arch}/bin/${program}`))
  } catch {
    return undefined
  }
}

function runUnder(node) {
  // The IPC channel closes even when this process is killed. Then the child exits: see
  // exitWithParent.
  const child = spawn(node, nodeArguments(), {
    env: isServe ? { ...SERVE_ENVIRONMENT, ...process.env } : process.env,
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  })
  for (const signal of SIGNALS) process.on(signal, () => child.kill(signal))
  child.on('error', (error) => {
    console.error(`Cannot run ${node}: ${error.message}`)
    process.exit(1)
  })
  child.on('exit', (code, signal) =>
    process.exit(signal === null ? code : 128 + constants.signals[signal]),
  )
}

/** Ends a process of `runUnder` when its parent is killed: an orphan would keep the port and the
 *  lock of `serve`. */
function exitWithParent() {
  if (!process.channel) return
  process.channel.unref()
  process.once('disconnect', () => process.exit(1))
}
