/** The statuses that an operation must declare, the headers that it reads, and the schema of errors. */
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import type { Finding } from '../model/source.ts'

interface ServerStatus {
  status: number
  applies(operation: Operation): boolean
  because: string
}

const always = (): boolean => true
const isRead = ({ method }: Operation): boolean => method === 'get' || method === 'head'
const takesHeader =
  (name: string) =>
  ({ parameters }: Operation): boolean =>
    parameters.some(
      (parameter) => parameter.in === 'header' && parameter.name.toLowerCase() === name,
    )

const takesBody = ({ body, files }: Operation): boolean => body !== null || files.length > 0

/** Statuses that the server returns before or instead of the handler. Two are not in this list: 405
 *  and 501. No operation returns 405, so `x-unmatched-requests` declares it. 501 occurs in
 *  development only. */
const SERVER_STATUSES: ServerStatus[] = [
  {
    status: 304,
    applies: (operation) => isRead(operation) && 'etag' in operation.success.headers,
    because: 'its response has an ETag',
  },
  { status: 400, applies: always, because: 'any URL or body can be malformed' },
  { status: 401, applies: always, because: 'it needs an API key' },
  {
    status: 403,
    applies: (operation) => !isRead(operation) || operation.permission !== null,
    because: 'it needs more than a Read Only key',
  },
  { status: 404, applies: ({ path }) => path.includes('{'), because: 'its path names a record' },
  { status: 409, applies: takesHeader('idempotency-key'), because: 'it takes an Idempotency-Key' },
  { status: 412, applies: takesHeader('if-match'), because: 'it takes If-Match' },
  { status: 413, applies: takesBody, because: 'it takes a body' },
  { status: 414, applies: always, because: 'any URL can be too long' },
  { status: 415, applies: takesBody, because: 'it takes a body' },
  { status: 422, applies: always, because: 'it refuses unknown query parameters' },
  { status: 429, applies: always, because: 'it is rate limited' },
  { status: 500, applies: always, because: 'the service can have a defect' },
  { status: 503, applies: always, because: 'the database can be unavailable' },
]

export function findUndeclaredStatuses({ operations }: Contract): Finding[] {
  return operations.flatMap((operation) => {
    const { id, place, responses } = operation
    const declared = new Set(responses.map(({ status }) => status))
    return SERVER_STATUSES.filter(
      ({ status, applies }) => applies(operation) && !declared.has(status),
    ).map(({ status, because }) => ({
      source: place.source,
      path: [...place.path, 'responses'],
      problem: `${id} can return ${status}, because ${because}: declare it`,
    }))
  })
}

/** Whether the server itself returns the status for the operation. */
export function isServerStatus(operation: Operation, status: number): boolean {
  return SERVER_STATUSES.some((each) => each.status === status && each.applies(operation))
}

/** Request headers that the server reads. Handlers get no headers. */
const READ_HEADERS = ['idempotency-key', 'if-match', 'if-none-match', 'traceparent', 'x-request-id']

/** Header parameters without an effect. */
export function findUnreadHeaders({ operations }: Contract): Finding[] {
  return operations.flatMap(({ id, parameters }) =>
    parameters
      .filter(
        ({ in: where, name }) => where === 'header' && !READ_HEADERS.includes(name.toLowerCase()),
      )
      .map(({ name, place: { source, path } }) => ({
        source,
        path,
        problem: `${id} declares the header ${name}, which no handler gets: use a query parameter or the body`,
      })),
  )
}

/** Errors without the shared schema: ApiError, or ApiValidationError for 422. */
export function findOtherErrorSchemas({ operations }: Contract): Finding[] {
  const errors = operations.flatMap(({ responses }) =>
    responses.filter(({ status }) => status >= 400),
  )
  return errors.flatMap(({ status, place, content }) => {
    const shared = `#/components/schemas/${status === 422 ? 'ApiValidationError' : 'ApiError'}`
    const mediaTypes = Object.keys(content)
    if (
      mediaTypes.join() === 'application/json' &&
      content['application/json']?.schema.value.$ref === shared
    )
      return []
    return [
      {
        source: place.source,
        path: place.path,
        problem: `a ${status} must be application/json only, with $ref: '${shared}'`,
      },
    ]
  })
}
