/** Compares how clients authenticate: the schemes and their combinations. */
import { isDeepStrictEqual } from 'node:util'
import type { Contract } from '../model/contract.ts'
import { type Operation, securityPath } from '../model/operations.ts'
import { dereference } from '../model/references.ts'
import type { SecurityScheme } from '../model/security-schemes.ts'
import { valueAt } from '../model/source.ts'
import { type Change, type RuleId, type Subject, toChange } from './change.ts'

/** A part of what a client sends to authenticate. */
interface Credential {
  /** The security scheme without its name and descriptions, which requests do not depend on. */
  wire: object
  /** For example `a bearer token`. */
  name: string
  scopes: string[]
}

/** Credentials that a client sends together. Empty if the client needs no authentication. */
type Alternative = Credential[]

export function compareSecurity(subject: Subject, old: Operation, now: Operation): Change[] {
  const before = listAlternatives(subject.base, old)
  const after = listAlternatives(subject.revision, now)
  const place = { source: now.place.source, path: securityPath(subject.revision.openapi, now) }
  const change = (id: RuleId, what: string): Change[] => [
    toChange(subject, { name: 'the authentication', place }, id, what),
  ]
  const isClientRefused = before.some((sent) => !after.some((needed) => accepts(needed, sent)))
  const added = after.filter((sent) => !before.some((needed) => accepts(needed, sent)))
  if (before.some(isNone))
    return isClientRefused ? change('api-security-added', `is new: it takes ${format(after)}`) : []
  if (after.some(isNone)) return change('api-security-removed', 'is no longer needed')
  if (isClientRefused)
    return change('api-security-changed', `takes ${format(after)} instead of ${format(before)}`)
  return added.length > 0
    ? change('api-security-alternative-added', `also takes ${format(added)}`)
    : []
}

function isNone(alternative: Alternative): boolean {
  return alternative.length === 0
}

/** Whether `sent` has every credential and scope of `needed`. */
function accepts(needed: Alternative, sent: Alternative): boolean {
  return needed.every(({ wire, scopes }) =>
    sent.some(
      (credential) =>
        isDeepStrictEqual(credential.wire, wire) &&
        scopes.every((scope) => credential.scopes.includes(scope)),
    ),
  )
}

function listAlternatives(contract: Contract, operation: Operation): Alternative[] {
  const { root } = contract.openapi
  const list = (valueAt(root, securityPath(contract.openapi, operation)) ?? []) as Record<
    string,
    string[]
  >[]
  if (list.length === 0) return [[]]
  return list.map((requirement) =>
    Object.entries(requirement).map(([name, scopes]) => readCredential(contract, name, scopes)),
  )
}

function readCredential(
  { sources, openapi }: Contract,
  scheme: string,
  scopes: string[],
): Credential {
  const path = ['components', 'securitySchemes', scheme]
  const value = valueAt(openapi.root, path)
  const target = dereference(sources, { source: openapi, path, value }).value
  const definition = (target ?? { type: '', scheme }) as SecurityScheme
  const wire = Object.entries(definition).filter(
    ([key]) => !ANNOTATIONS.includes(key) && !key.startsWith('x-'),
  )
  return { wire: Object.fromEntries(wire), name: nameCredential(definition, scopes), scopes }
}

const ANNOTATIONS = ['description', 'bearerFormat']

function nameCredential(
  { type, scheme = '', in: where, name }: SecurityScheme,
  scopes: string[],
): string {
  const rights = scopes.length === 0 ? '' : ` with ${scopes.join(', ')}`
  if (type === 'apiKey') return `a key in the ${where} ${name}`
  if (type === 'oauth2') return `an OAuth 2.0 token${rights}`
  if (type === 'openIdConnect') return `an OpenID Connect token${rights}`
  if (scheme.toLowerCase() === 'bearer') return 'a bearer token'
  if (scheme.toLowerCase() === 'basic') return 'a user name and password'
  return `credentials of the scheme ${scheme}`
}

function format(alternatives: Alternative[]): string {
  return alternatives
    .map((credentials) => credentials.map(({ name }) => name).join(' and ') || 'none')
    .join(' or ')
}
