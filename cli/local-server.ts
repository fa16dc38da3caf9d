/** The servers of `muster listen` and `muster mock`. */
import type { RequestListener } from 'node:http'
import { Refused } from '../errors.ts'
import { type HttpServer, listen } from '../server/http.ts'

/** Listens where `--host` and `--port` say. Throws `Refused` when this is not possible. */
export async function listenLocally(
  handle: RequestListener,
  { host, port }: { host: string; port: number },
): Promise<HttpServer> {
  return listen(handle, { host, port }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EADDRINUSE')
      throw new Refused(`Port ${port} of ${host} is in use. Choose another one with --port.`, {
        cause: error,
      })
    if (error.syscall === 'listen' || error.syscall === 'getaddrinfo')
      throw new Refused(`Cannot listen on ${host}: ${error.message}`, { cause: error })
    throw error
  })
}
