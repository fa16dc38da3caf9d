/** Starts the servers of `muster mock` and `muster listen`. */
import type { RequestListener } from 'node:http'
import { Refused } from '../errors.ts'
import { type HttpServer, listen, urlOf } from '../server/http.ts'

export interface LocalService extends HttpServer {
  url: string
}

/** Throws `Refused` when it cannot listen, for example because the port is in use. */
export async function listenLocally(
  handle: RequestListener,
  { host, port }: { host: string; port: number },
): Promise<LocalService> {
  try {
    const server = await listen(handle, { host, port })
    return { ...server, url: urlOf(host, server.port) }
  } catch (error) {
    const { code, syscall, message } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE')
      throw new Refused(`Port ${port} of ${host} is already in use. Set --port to another port.`, {
        cause: error,
      })
    if (syscall === 'listen' || syscall === 'getaddrinfo')
      throw new Refused(`Cannot listen on ${host}: ${message}`, { cause: error })
    throw error
  }
}
