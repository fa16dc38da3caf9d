#!/usr/bin/env node
// Finds the right Node and hands over to cli/main.ts. Plain JavaScript that older versions can still read.
import { spawn } from 'node:child_process'
import { realpathSync } from 'node:fs'
import module from 'node:module'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'

/** The first with argon2 in node:crypto, and with types stripped from TypeScript by default. */
const NEEDED = [24, 7]
const LINGER_MS = 500
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP']

const [major, minor] = process.versions.node.split('.').map(Number)
// Looking up a name takes a thread of libuv's, and so does SQLite: with four, a few webhooks whose names hang would
// leave none to the others.
process.env.UV_THREADPOOL_SIZE ??= '128'

const serves = major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])

if (serves) {
  endWithParent()
  // Halves the time that a short command takes; where it cannot be written, nothing is lost.
  module.enableCompileCache(
    fileURLToPath(new URL('../node_modules/.cache/muster', import.meta.url)),
  )
  const { main } = await import('../cli/main.ts')
  process.exitCode = await main(process.argv.slice(2), process.env)
  // The command has ended. What it may have left open, such as an idle connection, is not waited for.
  setTimeout(() => process.exit(), LINGER_MS).unref()
} else {
  const node = installedNode()
  if (node === undefined || node === realpathSync(process.execPath)) {
    console.error(
      `Muster needs Node.js ${NEEDED.join('.')} or newer, and this is ${process.versions.node}.`,
    )
    console.error(
      'Run "npm ci" in the folder of Muster: it installs the right one beside the other packages.',
    )
    process.exit(1)
  }
  runUnder(node)
}

/** The Node that "npm ci" installs, or undefined. */
function installedNode() {
  try {
    return realpathSync(module.createRequire(import.meta.url).resolve('node/bin/node'))
  } catch {
    return undefined
  }
}

function runUnder(node) {
  // The channel is there to end: it does when this process dies in whatever way, and the other one follows.
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

/** Without this, killing the outer process would leave the inner one behind, with the port and the lock. */
function endWithParent() {
  if (!process.channel) return
  process.channel.unref()
  process.once('disconnect', () => process.exit(1))
}
