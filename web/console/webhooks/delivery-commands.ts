/** Commands for a shell, with which people see for themselves what a delivery is. No secret is in them. */
import { quoted } from '../curl.ts'

/** The value of `X-Service-Signature`, computed by openssl from the bytes of the body. */
export function opensslCommand(body: string): string {
  return [
    `SIGNING_SECRET='whsec_…'  # yours`,
    `printf '%s' ${quoted(body)} \\`,
    `  | openssl dgst -sha256 -hmac "$SIGNING_SECRET" -r | cut -d' ' -f1`,
  ].join('\n')
}

/** The same request again. */
export function curlCommand(url: string, headers: Record<string, string>, body: string): string {
  return [
    `curl -i -X POST ${quoted(url)}`,
    ...Object.entries(headers).map(([name, value]) => `  -H ${quoted(`${name}: ${value}`)}`),
    `  --data-binary ${quoted(body)}`,
  ].join(' \\\n')
}
