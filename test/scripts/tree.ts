/** A copy of this repository in a temporary folder that tests can change. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { until } from '../helpers.ts'
import { copyRepository } from '../repository.ts'

const STOP_MS = 20_000

export interface Ran {
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

export async function copyOfRepository() {
  const root = await copyRepository()
  const path = (file: string): string => join(root, file)
  const environment = (more: Record<string, string>) => ({
    PATH: process.env.PATH,
    DATA_DIR: path('data'),
    LOG_LEVEL: 'silent',
    DRAIN_MS: '0',
    ...more,
  })
  const started: Running[] = []

  function start(args: string[], more: Record<string, string> = {}): Running {
    const child = spawn(process.execPath, [path('bin/muster.js'), ...args], {
      cwd: root,
      env: environment(more),
    })
    let text = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (part) => {
        text += part
      })
    const ended = new Promise((resolve) => child.on('close', resolve))
    const stop = async (): Promise<void> => {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
      await ended
      clearTimeout(timer)
    }
    const running = { child, output: () => text, stop }
    started.push(running)
    return running
  }

  return {
    path,
    start,
    read: (file: string) => readFile(path(file), 'utf8'),
    write: (file: string, text: string) => writeFile(path(file), text),
    async replace(file: string, from: string, to: string) {
      const text = await readFile(path(file), 'utf8')
      expect(text).toContain(from)
      await writeFile(
        path(file),
        text.replace(from, () => to),
      )
    },
    remove: (file: string) => rm(path(file)),
    exists: (file: string) =>
      readFile(path(file)).then(
        () => true,
        () => false,
      ),
    /** Runs a program with Node, such as `bin/muster.js`, and waits until it has exited. */
    run: (program: string, args: string[], more: Record<string, string> = {}): Promise<Ran> =>
      new Promise((resolve) => {
        execFile(
          process.execPath,
          [path(program), ...args],
          { cwd: root, env: environment(more) },
          (error, stdout, stderr) => {
            resolve({ status: error === null ? 0 : Number(error.code), output: stdout + stderr })
          },
        )
      }),
    async [Symbol.asyncDispose]() {
      await Promise.all(started.map((running) => running.stop()))
      await rm(root, { recursive: true, maxRetries: 3 })
    },
  }
}

export type Tree = Awaited<ReturnType<typeof copyOfRepository>>

export const WITHIN_MS = 60_000

/** Starts the tree's server. Returns when it responds, with the account that its first start
 *  created. */
export async function whenReady(tree: Tree, environment: Record<string, string> = {}) {
  const running = tree.start(['serve', '--json'], { PORT: '0', ...environment })
  const line = await until(
    'the service is ready',
    () => running.output().includes('\n') && running.output(),
    WITHIN_MS,
  )
  const { url, first_account: first } = JSON.parse(line.split('\n')[0] ?? '')
  return {
    running,
    url: url as string,
    key: first?.token as string,
    first: first as { email: string; password: string } | undefined,
  }
}
