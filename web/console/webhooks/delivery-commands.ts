/** Commands for a shell, with which people see for themselves what a delivery is. No secret is in them. */
import { quoteForShell } from '../../shared/shell.ts'

/** The value of `X-Service-Signature`, computed by openssl from the bytes of the body. */
export function opensslCommand(body: string): string {
  return [
    `SIGNING_SECRET='whsec_…'  # yours`,
    `printf '%s' ${quoteForShell(body)} \\`,
    `  | openssl dgst -sha256 -hmac "$SIGNING_SECRET" -r | cut -d' ' -f1`,
  ].join('\n')
}
