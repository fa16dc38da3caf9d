/** Certificates for tests. */
import { randomUUID } from 'node:crypto'
import { isIP } from 'node:net'
import { generate } from 'selfsigned'

export interface Certificate {
  /** PEM. */
  key: string
  /** PEM. */
  cert: string
}

export interface CertificateOptions {
  /** A host name or IP address. 127.0.0.1 by default. */
  host?: string
  notBefore?: Date
  notAfter?: Date
}

export interface Authority {
  /** PEM. Clients must trust this certificate. */
  cert: string
  issue(options?: CertificateOptions): Promise<Certificate>
}

const DAY_MS = 86_400_000

export async function newAuthority(): Promise<Authority> {
  const { private: key, cert } = await generate(
    [{ name: 'commonName', value: `Test authority ${randomUUID()}` }],
    {
      ...commonOptions({}),
      extensions: [
        { name: 'basicConstraints', cA: true, critical: true },
        { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
      ],
    },
  )
  return { cert, issue: (options = {}) => newCertificate(options, { key, cert }) }
}

/** Self-signed unless an authority signs it. Valid from yesterday to tomorrow by default. */
export async function newCertificate(
  options: CertificateOptions = {},
  authority?: Certificate,
): Promise<Certificate> {
  const { host = '127.0.0.1' } = options
  const { private: key, cert } = await generate([{ name: 'commonName', value: host }], {
    ...commonOptions(options),
    ca: authority,
    extensions: [
      { name: 'basicConstraints', cA: false },
      {
        name: 'subjectAltName',
        // The types of RFC 5280: 2 is a DNS name, 7 is an IP address.
        altNames: [isIP(host) === 0 ? { type: 2, value: host } : { type: 7, ip: host }],
      },
    ],
  })
  return { key, cert }
}

/** Options of every certificate. */
function commonOptions({
  notBefore = new Date(Date.now() - DAY_MS),
  notAfter = new Date(Date.now() + DAY_MS),
}: CertificateOptions) {
  return {
    keyType: 'ec',
    algorithm: 'sha256',
    notBeforeDate: notBefore,
    notAfterDate: notAfter,
  } as const
}
