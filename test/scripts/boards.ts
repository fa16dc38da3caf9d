/** A service with jobs below tasks, for tests of `muster contract` with another contract than our
 *  own. */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Contract } from '../../scripts/model/contract.ts'
import { parseJson } from '../../scripts/model/json.ts'
import type { Operation } from '../../scripts/model/operations.ts'

export interface BoardsOptions {
  contract: Contract
  key: string
  /** Whether the body is valid for the operation. */
  isValid(operation: Operation, body: unknown): boolean
  fault?: 'lists the jobs of all tasks' | 'ignores X-Idempotency'
  /** For how long lists return new titles in each response. The time begins with the first request
   *  for page 2 of size 2. */
  changesForMs?: number
}

interface BoardsResponse {
  status: number
  headers?: Record<string, string>
  json?: unknown
}

interface Call {
  operation: Operation
  path: string
  query: Map<string, string>
  body: unknown
}

const MAX_BODY_CHARACTERS = 1024 * 1024
const KEY_PATTERN = /^[\x21-\x7e]{1,100}$/
const SEGMENTS = ['tasks', '{task_id}', 'jobs', '{job_id}']

export async function startBoards({
  contract,
  key: apiKey,
  isValid,
  fault,
  changesForMs = 0,
}: BoardsOptions) {
  /** The records by path. */
  const records = new Map<string, { id: string; title: string }>()
  /** By idempotency key. */
  const completed = new Map<string, { request: string; response: BoardsResponse }>()
  const paths: string[] = []
  let changesUntil: number | undefined

  function handle(request: IncomingMessage, bodyText: string): BoardsResponse {
    const [path = '', search = ''] = (request.url ?? '').split('?')
    paths.push(path)
    const template = `/${SEGMENTS.slice(0, path.split('/').length - 1).join('/')}`
    const operations = contract.operations.filter((one) => one.path === template)
    const methods = operations.map(({ method }) => method.toUpperCase())
    const allow = [...methods, 'HEAD', 'OPTIONS'].join(', ')
    if (request.method === 'OPTIONS') return { status: 204, headers: { allow } }
    const method = request.method === 'HEAD' ? 'get' : request.method?.toLowerCase()
    const operation = operations.find((one) => one.method === method)
    if (operation === undefined) return { status: 405, headers: { allow } }
    if (request.headers.authorization?.replace(/^bearer +/i, '') !== apiKey) return { status: 401 }
    const query = readQuery(operation, search)
    if (query === undefined) return { status: 400 }
    const status = operation.body ? findBodyProblem(request, bodyText) : undefined
    if (status !== undefined) return { status }
    const body = parseJson(bodyText)
    if (operation.body && !isValid(operation, structuredClone(body))) return { status: 422 }
    if (!KEY_PATTERN.test(String(request.headers['x-idempotency'] ?? 'none')))
      return { status: 400 }
    const key = fault === 'ignores X-Idempotency' ? undefined : request.headers['x-idempotency']
    return performOnce(String(key ?? randomUUID()), path + canonical(body), () =>
      perform({ operation, path, query, body }),
    )
  }

  function performOnce(key: string, request: string, work: () => BoardsResponse): BoardsResponse {
    const earlier = completed.get(key)
    if (earlier) return earlier.request === request ? earlier.response : { status: 422 }
    const response = work()
    if (response.status < 300) completed.set(key, { request, response })
    return response
  }

  function perform({ operation, path, query, body }: Call): BoardsResponse {
    const { method, path: template } = operation
    const task = path.split('/').slice(0, -1).join('/')
    const isTaskMissing = template.endsWith('/jobs') && !records.has(task)
    const isRecordMissing = template.endsWith('}') && !records.has(path)
    if (isTaskMissing || isRecordMissing) return { status: 404 }
    if (method === 'post') {
      const record = { id: randomUUID(), ...(body as { title: string }) }
      const location = `${path}/${record.id}`
      records.set(location, record)
      return { status: 201, headers: { location }, json: record }
    }
    if (!template.endsWith('}')) return { status: 200, json: list(path, query) }
    if (method === 'delete') {
      for (const other of records.keys())
        if (other === path || other.startsWith(`${path}/`)) records.delete(other)
      return { status: 204 }
    }
    const record = { ...records.get(path), ...(body as object) } as { id: string; title: string }
    records.set(path, record)
    return { status: 200, json: record }
  }

  function list(path: string, query: Map<string, string>) {
    const isHere = (other: string): boolean =>
      fault === 'lists the jobs of all tasks' && path.endsWith('/jobs')
        ? other.includes('/jobs/')
        : other.startsWith(`${path}/`) && !other.slice(path.length + 1).includes('/')
    const found = [...records].filter(([other]) => isHere(other)).map(([, record]) => record)
    const sorted = found.toSorted((a, b) => (a.id < b.id ? -1 : 1))
    const [page, size] = [Number(query.get('page') ?? 1), Number(query.get('size') ?? 20)]
    if (page === 2 && size === 2) changesUntil ??= Date.now() + changesForMs
    const data = sorted.slice((page - 1) * size, page * size)
    const isChanging = Date.now() < (changesUntil ?? 0)
    return {
      data: isChanging
        ? data.map((record) => ({ ...record, title: randomUUID().slice(0, 8) }))
        : data,
      total: sorted.length,
    }
  }

  const server = createServer(async (request, response) => {
    const { status, headers, json } = handle(request, await text(request))
    const type = json === undefined ? {} : { 'Content-Type': 'application/json' }
    response.writeHead(status, { ...headers, ...type })
    response.end(json === undefined || request.method === 'HEAD' ? '' : JSON.stringify(json))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** The requested paths. */
    paths,
    records,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** The parameters of the query, or undefined if it is invalid. */
function readQuery({ parameters }: Operation, search: string): Map<string, string> | undefined {
  const query = new Map<string, string>()
  for (const pair of search.split('&').filter((part) => part !== '')) {
    const hasFaultyEscape = /%(?![0-9A-F]{2})/i.test(pair)
    if (hasFaultyEscape) return undefined
    const [name = '', value = ''] = [...new URLSearchParams(pair)][0] ?? []
    const parameter = parameters.find((one) => one.in === 'query' && one.name === name)
    const { maximum } = (parameter?.schema.value ?? {}) as { maximum?: number }
    const isInRange = /^[1-9]\d{0,8}$/.test(value) && Number(value) <= Number(maximum)
    if (!isInRange || query.has(name)) return undefined
    query.set(name, value)
  }
  return query
}

/** The same text for the same JSON value: bodies here have no nested objects. */
function canonical(body: unknown): string {
  return JSON.stringify(Object.entries(body ?? {}).sort())
}

/** The status that refuses the body, or undefined. */
function findBodyProblem({ headers }: IncomingMessage, bodyText: string): number | undefined {
  if (bodyText.length > MAX_BODY_CHARACTERS) return 413
  if (headers['content-type'] !== 'application/json') return 415
  return parseJson(bodyText) === undefined ? 400 : undefined
}
