/** The credentials of an operation, for the form and the sample of its page. */
import type { Operation } from '../../scripts/model/operations.ts'
import { authorizationWord } from '../../scripts/model/security-schemes.ts'
import { quoteForShell } from '../shared/shell.ts'
import type { Api } from './api.ts'
import { queryText } from './samples/notation.ts'
import { fillPath, type SampleRequest } from './samples/request.ts'

/** A header with a key. */
export interface Credential {
  header: string
  /** Before the key. */
  prefix: string
}

/** Undefined if the operation needs none, or takes it in the query or a cookie. */
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

export function plainCurl(api: Api, operation: Operation, request: SampleRequest): string {
  const { method, baseUrl, query, body } = request
  const url = baseUrl + fillPath(request, ({ name }) => `{${name}}`)
  const search = new URLSearchParams(queryText(query)).toString()
  const credential = findCredential(api, operation)
  const type = operation.body?.mediaType
  return [
    `curl -X ${method} ${quoteForShell(search === '' ? url : `${url}?${search}`)}`,
    ...(credential
      ? [`-H ${quoteForShell(`${credential.header}: ${credential.prefix}`)}"$API_KEY"`]
      : []),
    ...(body === undefined || type === undefined
      ? []
      : [
          `-H ${quoteForShell(`Content-Type: ${type}`)}`,
          `-d ${quoteForShell(typeof body === 'string' ? body : JSON.stringify(body, null, 2))}`,
        ]),
  ].join(' \\\n  ')
}
