/** The header of the API key, for the form and the curl sample on the page of an operation. */
import type { Operation } from '../../scripts/model/operations.ts'
import { authorizationWord } from '../../scripts/model/security-schemes.ts'
import type { Api } from './api.ts'

interface Credential {
  header: string
  /** The text before the key, for example `Bearer `. */
  prefix: string
}

/** The header of the operation's first security scheme. Undefined if the operation needs no key, or
 *  takes the key in the query or a cookie. */
export function findCredential(
  { securitySchemes }: Api,
  { security }: Operation,
): Credential | undefined {
  const [name] = security.flatMap((requirement) => Object.keys(requirement))
  const scheme = name === undefined ? undefined : securitySchemes[name]
  if (!scheme) return undefined
  if (scheme.type === 'apiKey')
    return scheme.in === 'header' ? { header: scheme.name ?? '', prefix: '' } : undefined
  return { header: 'Authorization', prefix: `${authorizationWord(scheme)} ` }
}
