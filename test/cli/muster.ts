/** Runs the real command in its own process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const BIN = fileURLToPath(new URL('../../bin/muster.js', import.meta.url))

export interface Ended {
  status: number | null
  stdout: string
  stderr: string
}

export interface Muster {
  dataDir: string
  /** Runs a command and resolves when it has exited. */
  run(args: string[], options?: RunOptions): Promise<Ended>
  /** Runs a command with --json and returns the document. Throws if it fails or prints anything
   *  else. */
  // biome-ignore lint/suspicious/noExplicitAny: each command prints another document.
  json(args: string[], options?: RunOptions): Promise<any>
  /** Starts a command that runs until a signal stops it. */
  start(args: string[], options?: RunOptions): Started
  [Symbol.asyncDispose](): Promise<void>
}

export interface RunOptions {
  environment?: Record<string, string>
  input?: string
  cwd?: string
  /** The path of the Node that runs the command. Default: the Node of the tests. */
  node?: string
  /** The command line to run. Default: that of this repository. */
  bin?: string
  /** A program and its arguments that run the command. */
  wrapper?: string[]
}

export interface Started {
  process: ChildProcess
  /** The output so far. */
  output: { stdout: string; stderr: string }
  ended: Promise<Ended>
}

/** Runs commands on a temporary data directory. The disposal kills their processes and deletes the
 *  directory. */
export async function newMuster(): Promise<Muster> {
  const dataDir = await mkdtemp(join(tmpdir(), 'muster-test-'))
  const running = new Set<Started>()

  const start: Muster['start'] = (args, options = {}) => {
    const { environment, input, cwd, node = process.execPath, bin = BIN, wrapper = [] } = options
    const [program = node, ...rest] = [...wrapper, node, bin, ...args]
    const child = spawn(program, rest, {
      cwd,
      env: { DATA_DIR: dataDir, DRAIN_MS: '0', ...environment },
    })
    const output = { stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output.stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text) => {
      output.stderr += text
    })
    child.stdin.end(input)
    const ended = new Promise<Ended>((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (status) => {
        running.delete(started)
        resolve({ status, ...output })
      })
    })
    const started = { process: child, output, ended }
    running.add(started)
    return started
  }
  const run: Muster['run'] = (args, options) => start(args, options).ended

  return {
    dataDir,
    start,
    run,
    async json(args, options) {
      const { status, stdout, stderr } = await run([...args, '--json'], options)
      if (status !== 0 || stderr !== '')
        throw new Error(`muster ${args.join(' ')} ended with ${status}: ${stderr}`)
      return JSON.parse(stdout)
    },
    async [Symbol.asyncDispose]() {
      const unfinished = [...running]
      for (const { process } of unfinished) process.kill('SIGKILL')
      await Promise.all(unfinished.map(({ ended }) => ended))
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** Waits until standard output or standard error matches. Throws if the process ends first. */
export function waitForOutput(started: Started, pattern: RegExp): Promise<RegExpExecArray> {
  return searchOutput(started, ({ stdout, stderr }) => pattern.exec(stdout) ?? pattern.exec(stderr))
}

/** Waits for the document that a command with --json prints when it is ready. Throws if the process
 *  ends first. */
// biome-ignore lint/suspicious/noExplicitAny: each command prints another document.
export function waitForDocument(started: Started): Promise<any> {
  return searchOutput(started, ({ stdout }) => {
    const end = stdout.indexOf('\n')
    return end === -1 ? null : JSON.parse(stdout.slice(0, end))
  })
}

function searchOutput<T>(
  { process, output, ended }: Started,
  search: (output: Started['output']) => T | null,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const onOutput = (): void => {
      const found = search(output)
      if (found !== null) resolve(found)
    }
    for (const stream of [process.stdout, process.stderr]) stream?.on('data', onOutput)
    ended.then(({ stderr }) => reject(new Error(`The process ended: ${stderr}`)), reject)
  })
}

/** A key that the service accepts as SECRET_KEY. */
export const SECRET_KEY = 'a secret key that only tests would ever use'

export const PASSWORD = 'correct horse battery'

/** The options of `muster account create` for an account whose Owner has `PASSWORD`. */
export function accountOptions(name = 'Acme', email = 'ann@example.com'): string[] {
  return ['--name', name, '--email', email, '--password', PASSWORD]
}

/** An account, by default Acme of ann@example.com. */
export function newAccount(
  muster: Muster,
  name?: string,
  email?: string,
): Promise<{ account_id: string; user_id: string }> {
  return muster.json(['account', 'create', ...accountOptions(name, email)])
}
