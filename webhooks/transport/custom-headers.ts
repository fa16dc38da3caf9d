/** The headers that users add to the requests of a webhook, for example `Authorization`. Their values
 *  are encrypted like signing secrets, and nobody can read them back. */
import { Refused } from '../../errors.ts'
import { openSecret, type SecretKeys } from './secret.ts'

/** By name, with the spelling of the user. Null removes a header. */
export type HeaderChange = Record<string, string | null>

const NAME = /^[\w-]{1,100}$/
const VALUE = /^[!-~](?:[ -~]{0,998}[!-~])?$/
/** The headers of each delivery, of its body and of the connection (RFC 9110 §7.6.1). */
const RESERVED =
  /^(accept|connection|content-.*|expect|host|http2-settings|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|user-agent|traceparent|tracestate|webhook-.*|x-event-id|x-service-signature)$/i

/** Throws `Refused` for a header that the requests of a webhook cannot have. */
export function assertHeader(name: string, value: string | null): void {
  if (!NAME.test(name))
    throw new Refused(`“${name.slice(0, 100)}” is not a header name. Use for example X-Api-Key.`)
  if (RESERVED.test(name))
    throw new Refused(`Muster sets the header ${name} itself. Use another name.`)
  if (value !== null && !VALUE.test(value))
    throw new Refused(
      `The value of ${name} must have 1 to 1,000 characters: printable ASCII, with no space at the ends.`,
    )
}

/** Reads headers from lines such as `X-Api-Key: value`. Throws `Refused`. */
export function parseHeaderLines(lines: string[]): Record<string, string> {
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':')
    if (colon === -1) throw new Refused('Write each header as “Name: value”.')
    return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()]
  })
  const names = headers.map(([name]) => name.toLowerCase())
  const repeated = headers.find((_, index) => names.indexOf(names[index] ?? '') !== index)
  if (repeated) throw new Refused(`The header ${repeated[0]} is there twice. Remove one of them.`)
  return Object.fromEntries(headers)
}

/** Throws `SecretUnreadable`. */
export type HeadersOpener = (
  webhookId: string,
  sealed: Record<string, string>,
) => Record<string, string>

/** Returns a function that decrypts stored headers. */
export function headersOpener(keys: SecretKeys): HeadersOpener {
  return (webhookId, sealed) =>
    Object.fromEntries(
      Object.entries(sealed).map(([name, value]) => [name, openSecret(keys, webhookId, value)]),
    )
}
