/** Builds requests to the operations of an OpenAPI document, with values that are valid by it. */
import { isJson, type Operation, type Parameter } from '../model/operations.ts'
import { authorizationWord, type SecuritySchemes } from '../model/security-schemes.ts'
import { DELIMITERS, listParameters, type PlaceName } from './parameters.ts'
import { concreteType, type Tools } from './service.ts'

export interface PlannedRequest {
  /** In upper case. */
  method: string
  /** Path and query, below the base path. */
  path: string
  headers: Record<string, string>
  body?: string
}

/** A request whose values are not text yet: they have the types of their schemas. */
export interface Draft {
  operation: Operation
  parameters: Record<PlaceName, Map<Parameter, unknown>>
  /** The headers and query parameters that carry the credentials, by name. */
  credentials: { headers: Record<string, string>; query: Record<string, string> }
  mediaType: string | undefined
  body: unknown
}

/** A draft with the required parameters and the body. Throws an Error that names the part for which
 *  no valid value was found. */
export function draftRequest(
  { sampler }: Tools,
  schemes: SecuritySchemes,
  operation: Operation,
  key: string,
): Draft {
  const valuesOf = (place: PlaceName) =>
    new Map(
      listParameters(operation, place)
        .filter(({ required }) => required)
        .map((parameter): [Parameter, unknown] => {
          const value = sampler.sample(parameter.schema, 'request', parameter.example)
          if (value === undefined) throw new Error(`parameter ${parameter.name} needs an example`)
          return [parameter, value]
        }),
    )
  const { body, isBodyRequired } = operation
  const value = body ? sampler.sample(body.schema, 'request', body.example) : undefined
  if (body && isBodyRequired && value === undefined && isJson(body.mediaType))
    throw new Error('the request body needs an example')
  return {
    operation,
    parameters: {
      path: valuesOf('path'),
      query: valuesOf('query'),
      header: valuesOf('header'),
      cookie: valuesOf('cookie'),
    },
    credentials: credentialsFor(schemes, operation, key),
    mediaType: value === undefined ? undefined : body?.mediaType,
    body: value,
  }
}

function credentialsFor(
  schemes: SecuritySchemes,
  { security }: Operation,
  key: string,
): Draft['credentials'] {
  const headers: Record<string, string> = {}
  const query: Record<string, string> = {}
  for (const name of Object.keys(security.find((one) => Object.keys(one).length > 0) ?? {})) {
    const scheme = schemes[name]
    if (!scheme) continue
    if (scheme.type !== 'apiKey') headers.Authorization = `${authorizationWord(scheme)} ${key}`
    else if (scheme.in === 'query') query[scheme.name ?? ''] = key
    else if (scheme.in === 'cookie') headers.Cookie = `${scheme.name}=${key}`
    else headers[scheme.name ?? ''] = key
  }
  return { headers, query }
}

export function renderRequest(draft: Draft): PlannedRequest {
  const { operation, parameters, credentials, mediaType, body } = draft
  const path = [...parameters.path].reduce(
    (text, [{ name }, value]) => text.replace(`{${name}}`, encodeURIComponent(toText(value))),
    operation.path,
  )
  const query = [
    ...[...parameters.query].flatMap(([parameter, value]) => renderQuery(parameter, value)),
    ...Object.entries(credentials.query),
  ]
  const cookies = [...parameters.cookie].map(([{ name }, value]) => `${name}=${toText(value)}`)
  const headers: Record<string, string> = { ...credentials.headers }
  for (const [{ name, mediaType: type }, value] of parameters.header)
    headers[name] = type === undefined ? toText(value) : JSON.stringify(value)
  if (cookies.length > 0)
    headers.Cookie = [headers.Cookie, ...cookies].filter((part) => part !== undefined).join('; ')
  if (mediaType !== undefined) headers['Content-Type'] = contentType(mediaType)
  const search = new URLSearchParams(query).toString()
  return {
    method: operation.method.toUpperCase(),
    path: search === '' ? path : `${path}?${search}`,
    headers,
    body: mediaType === undefined ? undefined : renderBody(headers['Content-Type'] ?? '', body),
  }
}

function contentType(mediaType: string): string {
  const type = concreteType(mediaType)
  return type === 'multipart/form-data' ? `${type}; boundary=${BOUNDARY}` : type
}

const BOUNDARY = 'part-of-the-form'

function renderQuery(parameter: Parameter, value: unknown): [string, string][] {
  const { name, mediaType, style = 'form', explode = style === 'form' } = parameter
  if (mediaType !== undefined) return [[name, JSON.stringify(value)]]
  if (style === 'deepObject') return renderNested(name, value)
  if (Array.isArray(value))
    return explode
      ? value.map((item) => [name, toText(item)])
      : [[name, value.map(toText).join(DELIMITERS[style] ?? ',')]]
  if (typeof value === 'object' && value !== null && explode)
    return Object.entries(value).map(([key, part]) => [key, toText(part)])
  return [[name, toText(value)]]
}

function renderNested(name: string, value: unknown): [string, string][] {
  if (typeof value !== 'object' || value === null) return [[name, toText(value)]]
  return Object.entries(value).flatMap(([key, part]) => renderNested(`${name}[${key}]`, part))
}

/** Writes an object with nested names, such as `name[key]`. Writes an empty object or list as JSON
 *  (OpenAPI 3.0.3, Encoding Object). */
function renderField(name: string, value: unknown): [string, string][] {
  const nested = renderNested(name, value)
  return nested.length === 0 ? [[name, JSON.stringify(value)]] : nested
}

/** OpenAPI 3.0.3, style `simple`. */
function toText(value: unknown): string {
  if (Array.isArray(value)) return value.map(String).join(',')
  if (typeof value !== 'object' || value === null) return String(value)
  return Object.entries(value).flat().map(String).join(',')
}

function renderBody(type: string, value: unknown): string {
  if (isJson(type)) return JSON.stringify(value)
  if (typeof value !== 'object' || value === null) return String(value)
  const fields = Object.entries(value)
  if (type === 'application/x-www-form-urlencoded')
    return new URLSearchParams(fields.flatMap(([name, part]) => renderField(name, part))).toString()
  if (!type.startsWith('multipart/')) return JSON.stringify(value)
  const parts = fields.flatMap(([name, part]) =>
    [part].flat().map((item) => {
      const text = typeof item === 'object' ? JSON.stringify(item) : String(item)
      return `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`
    }),
  )
  return `${parts.join('')}--${BOUNDARY}--\r\n`
}
