/** A TCP proxy between two parts of the cluster that can be cut like a network. */
import { connect, createServer, type Socket } from 'node:net'

export interface Link extends AsyncDisposable {
  port: number
  /** Nothing passes until `restore`, and no side learns of it. */
  cut(): void
  restore(): void
}

/** Listens on `port`, and forwards to `target`. */
export async function startLink(port: number, target: number): Promise<Link> {
  const sockets = new Set<Socket>()
  const waiting: Socket[] = []
  let isCut = false
  const forward = (incoming: Socket): void => {
    const outgoing = track(connect(target, '127.0.0.1'))
    for (const [from, to] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      // Not `pipe`: it would resume a socket that `cut` has paused.
      from.on('data', (chunk) => to.write(chunk))
      from.on('close', () => to.destroy())
    }
  }
  const track = (socket: Socket): Socket => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    return socket
  }
  const server = createServer((incoming) => {
    track(incoming)
    if (isCut) waiting.push(incoming.pause())
    else forward(incoming)
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    port,
    cut() {
      isCut = true
      for (const socket of sockets) socket.pause()
    },
    restore() {
      isCut = false
      for (const socket of waiting.splice(0)) if (!socket.destroyed) forward(socket)
      for (const socket of sockets) socket.resume()
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
