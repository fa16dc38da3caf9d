#!/usr/bin/env node
// Starts cli/main.ts on the right version of Node.js. Plain JavaScript, so that older versions can run it.
import { spawn } from 'node:child_process'
import { realpathSync } from 'node:fs'
import module from 'node:module'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'

/** The first version with argon2 in node:crypto and type stripping by default. */
const NEEDED = [24, 7]
const LINGER_MS = 500
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP']

const [major, minor] = process.versions.node.split('.').map(Number)
// DNS lookups and SQLite take threads of libuv. With the default of four, a few slow lookups would block
// all others.
process.env.UV_THREADPOOL_SIZE ??= '128'

const serves = major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])

if (serves) {
  endWithParent()
  // Halves the time of a short command. An unwritable cache folder is not an error.
  module.enableCompileCache(
    fileURLToPath(new URL('../node_modules/.cache/muster', import.meta.url)),
  )
  const { main } = await import('../cli/main.ts')
  process.exitCode = await main(process.argv.slice(2), process.env)
  // Does not wait for open handles, for example idle connections.
  setTimeout(() => process.exit(), LINGER_MS).unref()
} else {
  const node = installedNode()
  if (node === undefined || node === realpathSync(process.execPath)) {
    console.error(
      `Muster needs Node.js ${NEEDED.join('.')} or newer; this is ${process.versions.node}.`,
    )
    console.error('Run "npm ci" in the folder of Muster. It installs the right version.')
    process.exit(1)
  }
  runUnder(node)
}

/** The path of the Node.js that "npm ci" installs, or undefined. */
function installedNode() {
  try {
    return realpathSync(module.createRequire(import.meta.url).resolve('node/bin/node'))
  } catch {
    return undefined
  }
}

function runUnder(node) {
  // The IPC channel closes when this process dies in any way. The child then exits, too: see endWithParent.
  const child = spawn(
    node,
    [...process.execArgv, fileURLToPath(import.meta.url), ...process.argv.slice(2)],
    {
      stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    },
  )
  for (const signal of SIGNALS) process.on(signal, () => child.kill(signal))
  child.on('error', (error) => {
    console.error(`${node} cannot be run: ${error.message}`)
    process.exit(1)
  })
  child.on('exit', (code, signal) =>
    process.exit(signal === null ? code : 128 + constants.signals[signal]),
  )
}

/** Without this, a killed parent would leave the child behind with the port and the lock. */
function endWithParent() {
  if (!process.channel) return
  process.channel.unref()
  process.once('disconnect', () => process.exit(1))
}
