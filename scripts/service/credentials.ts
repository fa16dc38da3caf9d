/** Finds the credentials of a request by the security schemes that its operation accepts. */
import type { Operation, SecurityRequirement } from '../model/operations.ts'
import {
  authorizationWord,
  type SecurityScheme,
  type SecuritySchemes,
} from '../model/security-schemes.ts'
import { findCookie, type RawParameters } from './parameters.ts'

/** By the name of a security scheme: its credential, for example a token without `Bearer`. */
export type Credentials = Readonly<Record<string, string>>

/** Returns the credentials of the alternative in `security` that the request satisfies. If it
 *  satisfies several, the one with the most schemes counts. Undefined if it satisfies none. */
export function findCredentials(
  schemes: SecuritySchemes,
  { security }: Operation,
  raw: RawParameters,
): Credentials | undefined {
  if (security.length === 0) return {}
  // An alternative without schemes admits everybody, so it comes last.
  const sorted = security.toSorted((a, b) => countSchemes(b) - countSchemes(a))
  for (const requirement of sorted) {
    const found = Object.keys(requirement).map((name): [string, string | undefined] => [
      name,
      readCredential(schemes[name], raw),
    ])
    if (found.every(([, credential]) => credential !== undefined))
      return Object.fromEntries(found) as Credentials
  }
  return undefined
}

function countSchemes(requirement: SecurityRequirement): number {
  return Object.keys(requirement).length
}

function readCredential(
  scheme: SecurityScheme | undefined,
  raw: RawParameters,
): string | undefined {
  if (!scheme) return undefined
  if (scheme.type !== 'apiKey') {
    const header = raw.headers.authorization?.toString() ?? ''
    return new RegExp(`^${authorizationWord(scheme)} +(\\S+)$`, 'i').exec(header)?.[1]
  }
  const { name = '', in: place } = scheme
  if (place === 'query') return raw.query.get(name) || undefined
  if (place === 'header') return raw.headers[name.toLowerCase()]?.toString() || undefined
  return findCookie(raw, name)
}

/** The value of `WWW-Authenticate`: a challenge for each scheme that the operation accepts (RFC
 *  9110 §11.6.1). HTTP has no registered scheme for API keys. `ApiKey`, our own, says where the key
 *  must be. */
export function formatChallenges(schemes: SecuritySchemes, { security }: Operation): string {
  const names = new Set(security.flatMap((requirement) => Object.keys(requirement)))
  const challenges = [...names].flatMap((name) =>
    schemes[name] ? [toChallenge(schemes[name])] : [],
  )
  return [...new Set(challenges)].join(', ')
}

function toChallenge(scheme: SecurityScheme): string {
  if (scheme.type === 'apiKey')
    return `ApiKey in="${scheme.in}", name="${encodeURI(scheme.name ?? '')}"`
  const word = authorizationWord(scheme)
  // RFC 7617 §2: Basic has a realm.
  return word === 'Basic' ? 'Basic realm="service"' : word
}
