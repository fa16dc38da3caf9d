/** Finds the credentials of a request: by the security schemes that its operation accepts. */
import type { Operation, SecurityRequirement } from '../model/operations.ts'
import { type Source, valueAt } from '../model/source.ts'
import { findCookie, type RawParameters } from './parameters.ts'

/** The credential of each scheme, for example a token without `Bearer`. */
export type Credentials = Readonly<Record<string, string>>

export interface Scheme {
  type: string
  /** Only of `http`: `basic` or `bearer`. */
  scheme?: string
  /** Only of `apiKey`. */
  name?: string
  in?: string
}

export function readSchemes({ root }: Source): Readonly<Record<string, Scheme>> {
  return (valueAt(root, ['components', 'securitySchemes']) ?? {}) as Record<string, Scheme>
}

/** Returns the credentials of the first alternative that the request satisfies. Undefined if it satisfies none. */
export function findCredentials(
  schemes: Readonly<Record<string, Scheme>>,
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

function readCredential(scheme: Scheme | undefined, raw: RawParameters): string | undefined {
  if (scheme?.type !== 'apiKey') {
    const kind = scheme?.scheme?.toLowerCase() === 'basic' ? 'Basic' : 'Bearer'
    const header = raw.headers.authorization?.toString() ?? ''
    return new RegExp(`^${kind} +(\\S+)$`, 'i').exec(header)?.[1]
  }
  const { name = '', in: place } = scheme
  if (place === 'query') return raw.query.get(name) || undefined
  if (place === 'header') return raw.headers[name.toLowerCase()]?.toString() || undefined
  return findCookie(raw, name)
}
