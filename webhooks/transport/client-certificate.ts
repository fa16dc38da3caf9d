/** The certificate that identifies this service to endpoints that ask for one (mutual TLS). */
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { Refused } from '../../errors.ts'

/** PEM, or the paths of PEM files. */
export interface ClientCertificate {
  cert: string
  key: string
}

/** Throws `Refused` if a file cannot be read, or if they do not fit together. */
export function readClientCertificate(files: ClientCertificate): ClientCertificate {
  try {
    const pair = { cert: readFileSync(files.cert, 'utf8'), key: readFileSync(files.key, 'utf8') }
    createSecureContext(pair)
    return pair
  } catch (error) {
    throw new Refused(
      'The files of WEBHOOK_CLIENT_CERT_FILE and WEBHOOK_CLIENT_KEY_FILE cannot be used: ' +
        `${(error as Error).message}.`,
      { cause: error },
    )
  }
}
