/** How clients authenticate: the security schemes of a document. */
import { type Source, valueAt } from './source.ts'

/** A Security Scheme Object. */
export interface SecurityScheme {
  type: string
  /** Only of `http`: for example `basic` or `bearer`, in upper or lower case. */
  scheme?: string
  /** `name` and `in`: only of `apiKey`. */
  name?: string
  in?: string
}

export type SecuritySchemes = Readonly<Record<string, SecurityScheme>>

export function readSecuritySchemes({ root }: Source): SecuritySchemes {
  return (valueAt(root, ['components', 'securitySchemes']) ?? {}) as SecuritySchemes
}

/** The word before the credential in the `Authorization` header. Only for schemes that use this
 *  header. */
export function authorizationWord({ scheme = '' }: SecurityScheme): 'Basic' | 'Bearer' {
  return scheme.toLowerCase() === 'basic' ? 'Basic' : 'Bearer'
}
