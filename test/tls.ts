/** Certificates, made when a test needs them. */
import { randomUUID } from 'node:crypto'
import { isIP } from 'node:net'
import { generate } from 'selfsigned'

export interface Certificate {
  /** Both PEM. */
  key: string
  cert: string
}

export interface Wanted {
  /** The name or IP address that it is for. */
  host?: string
  notBefore?: Date
  notAfter?: Date
}

export interface Authority {
  /** PEM, for those who are to trust it. */
  cert: string
  issue(wanted?: Wanted): Promise<Certificate>
}

const DAY_MS = 86_400_000

export async function newAuthority(): Promise<Authority> {
  const { private: key, cert } = await generate(
    [{ name: 'commonName', value: `Test authority ${randomUUID()}` }],
    {
      ...common({}),
      extensions: [
        { name: 'basicConstraints', cA: true, critical: true },
        { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
      ],
    },
  )
  return { cert, issue: (wanted = {}) => newCertificate(wanted, { key, cert }) }
}

/** Signed by itself unless there is an authority. For 127.0.0.1 and today unless something else is wanted. */
export async function newCertificate(
  wanted: Wanted = {},
  authority?: Certificate,
): Promise<Certificate> {
  const { host = '127.0.0.1' } = wanted
  const { private: key, cert } = await generate([{ name: 'commonName', value: host }], {
    ...common(wanted),
    ca: authority,
    extensions: [
      { name: 'basicConstraints', cA: false },
      {
        name: 'subjectAltName',
        altNames: [isIP(host) === 0 ? { type: 2, value: host } : { type: 7, ip: host }],
      },
    ],
  })
  return { key, cert }
}

function common({
  notBefore = new Date(Date.now() - DAY_MS),
  notAfter = new Date(Date.now() + DAY_MS),
}: Wanted) {
  return {
    keyType: 'ec',
    algorithm: 'sha256',
    notBeforeDate: notBefore,
    notAfterDate: notAfter,
  } as const
}
