/** Processes of the benchmark and the calls between them. */
import { fork } from 'node:child_process'
import { once } from 'node:events'

// biome-ignore lint/suspicious/noExplicitAny: each call takes other arguments.
type Calls = Record<string, (...args: any[]) => unknown>

interface Call {
  id: number
  name: string
  args: unknown[]
}

type Reply = { id: number } & ({ value: unknown } | { error: Error })

export interface Child<Own extends Calls> extends AsyncDisposable {
  /** Rejects with the error of the call, or when the process has ended. */
  call<Name extends keyof Own & string>(
    name: Name,
    ...args: Parameters<Own[Name]>
  ): Promise<Awaited<ReturnType<Own[Name]>>>
}

/** Runs in the child: executes the calls of its parent, and ends with its parent. */
export function serveCalls(calls: Calls): void {
  process.on('message', async ({ id, name, args }: Call) => {
    const reply = (message: Reply): void => void process.send?.(message)
    try {
      reply({ id, value: await calls[name]?.(...args) })
    } catch (error) {
      reply({ id, error: error as Error })
    }
  })
  process.once('disconnect', () => process.exit())
}

/** Starts a file of this folder that calls `serveCalls`. */
export function startChild<Own extends Calls>(file: string): Child<Own> {
  const child = fork(new URL(file, import.meta.url), { serialization: 'advanced' })
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  let calls = 0
  child.on('message', (message: Reply) => {
    const call = waiting.get(message.id)
    waiting.delete(message.id)
    if ('error' in message) call?.reject(message.error)
    else call?.resolve(message.value)
  })
  const exited = once(child, 'exit').then(([code, signal]) => {
    for (const { reject } of waiting.values())
      reject(new Error(`${file} ended (${signal ?? code})`))
  })
  return {
    call: (name, ...args) =>
      new Promise((resolve, reject) => {
        if (!child.connected) return reject(new Error(`${file} has ended`))
        const id = calls++
        waiting.set(id, { resolve: resolve as (value: unknown) => void, reject })
        child.send({ id, name, args } satisfies Call)
      }),
    async [Symbol.asyncDispose]() {
      if (child.connected) child.disconnect()
      await exited
    },
  }
}

/** Milliseconds of a clock that all processes of this machine share. */
export function sharedNowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
