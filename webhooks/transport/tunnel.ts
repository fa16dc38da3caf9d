/** Tunnels through the outgoing proxy of the operator (`WEBHOOK_PROXY`). */
import { type ClientRequest, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIPv6, type Socket } from 'node:net'
import { removeBrackets } from './egress.ts'

/** The message is for the delivery log, and does not say where the proxy is. */
export class ProxyFailed extends Error {
  override name = 'ProxyFailed'
}

/** Asks the proxy for a connection to an IP address (RFC 9110 §9.3.6). With a name, the proxy would
 *  look up the IP address again, and could get another one than we have checked. Calls back once.
 *  To destroy the returned request ends the attempt. */
export function openTunnel(
  proxy: URL,
  { address, port }: { address: string; port: number },
  callback: (error: Error | null, socket?: Socket) => void,
): ClientRequest {
  const authority = `${isIPv6(address) ? `[${address}]` : address}:${port}`
  const request = (proxy.protocol === 'https:' ? httpsRequest : httpRequest)({
    host: removeBrackets(proxy.hostname),
    port: proxy.port === '' ? undefined : proxy.port,
    method: 'CONNECT',
    path: authority,
    headers: { host: authority, ...proxyAuthorization(proxy) },
    agent: false,
  })
  request.once('connect', ({ statusCode = 0 }, socket) => {
    // Without a listener, an error would end the process. The TLS connection inside notices the end.
    socket.on('error', () => undefined)
    if (statusCode >= 200 && statusCode < 300) return callback(null, socket)
    socket.destroy()
    return callback(new ProxyFailed(`The outgoing proxy refused the connection (${statusCode}).`))
  })
  request.once('error', ({ code }: NodeJS.ErrnoException) =>
    callback(
      new ProxyFailed(`The outgoing proxy could not be reached (${code ?? 'no response'}).`),
    ),
  )
  return request.end()
}

function proxyAuthorization({ username, password }: URL): Record<string, string> {
  if (username === '') return {}
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` }
}
