/** A copy of this repository in a temporary folder that tests can change. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '../helpers.ts'
import { copyRepository, replaceOnce } from '../repository.ts'

/** The time for a start of the service, or for a restart of `muster dev`. */
export const START_LIMIT_MS = 60_000
const STOP_LIMIT_MS = 20_000

type Environment = Record<string, string>

interface ProgramResult {
  status: number
  output: string
}

export interface Running {
  child: ChildProcess
  /** Standard output and standard error so far. */
  output(): string
  /** Sends SIGTERM and waits until the process has exited. */
  stop(): Promise<void>
}

export interface Tree extends AsyncDisposable {
  /** The absolute path of a file. */
  path(file: string): string
  read(file: string): Promise<string>
  write(file: string, text: string): Promise<void>
  /** Replaces the first `from` of a file. Throws if the file does not contain it. */
  replace(file: string, from: string, to: string): Promise<void>
  remove(file: string): Promise<void>
  exists(file: string): Promise<boolean>
  /** Runs `muster` and waits until it has exited. */
  muster(args: string[], environment?: Environment): Promise<ProgramResult>
  /** Runs another program with Node, such as `node_modules/typescript/bin/tsc`. */
  run(program: string, args: string[]): Promise<ProgramResult>
  /** Starts `muster`. Disposal stops it. */
  start(args: string[], environment?: Environment): Running
}

export async function copyOfRepository(): Promise<Tree> {
  const root = await copyRepository()
  const path = (file: string): string => join(root, file)
  const read = (file: string): Promise<string> => readFile(path(file), 'utf8')
  const settings = { DATA_DIR: path('data'), LOG_LEVEL: 'silent', DRAIN_MS: '0' }
  const started: Running[] = []

  function run(
    program: string,
    args: string[],
    environment: Environment = {},
  ): Promise<ProgramResult> {
    const env = { PATH: process.env.PATH, ...settings, ...environment }
    return new Promise((resolve) => {
      const command = [path(program), ...args]
      execFile(process.execPath, command, { cwd: root, env }, (error, stdout, stderr) => {
        resolve({ status: error === null ? 0 : Number(error.code), output: stdout + stderr })
      })
    })
  }

  return {
    path,
    read,
    write: (file, text) => writeFile(path(file), text),
    async replace(file, from, to) {
      await writeFile(path(file), replaceOnce(await read(file), from, to))
    },
    remove: (file) => rm(path(file)),
    exists: (file) =>
      read(file).then(
        () => true,
        () => false,
      ),
    muster: (args, environment) => run('bin/muster.js', args, environment),
    run: (program, args) => run(program, args),
    start(args, environment = {}) {
      const child = spawn(process.execPath, [path('bin/muster.js'), ...args], {
        cwd: root,
        env: { PATH: process.env.PATH, ...settings, ...environment },
      })
      let text = ''
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (part) => {
          text += part
        })
      const ended = new Promise((resolve) => child.on('close', resolve))
      const stop = async (): Promise<void> => {
        child.kill('SIGTERM')
        const timer = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS)
        await ended
        clearTimeout(timer)
      }
      const running = { child, output: () => text, stop }
      started.push(running)
      return running
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(started.map((running) => running.stop()))
      await rm(root, { recursive: true, maxRetries: 3 })
    },
  }
}

/** Starts the tree's server. Returns when it is ready, with the account that its first start
 *  created. */
export async function serveTree(tree: Tree, environment: Environment = {}) {
  const running = tree.start(['serve', '--json'], { PORT: '0', ...environment })
  const line = await until(
    'the service is ready',
    () => running.output().includes('\n') && running.output(),
    START_LIMIT_MS,
  )
  const { url, first_account: first } = JSON.parse(line.split('\n')[0] ?? '')
  return {
    running,
    url: url as string,
    key: first?.token as string,
    first: first as { email: string; password: string } | undefined,
  }
}
