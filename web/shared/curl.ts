/** HTTP requests as curl commands. */
import { quoteForShell, quoteWithVariables } from './shell.ts'

interface ApiRequest {
  method: string
  url: string
  /** Parameters that curl encodes and adds to `url`. Only for GET. */
  query?: [name: string, value: string][]
  /** Whether the command sends a new `Idempotency-Key` at each run. */
  isKeyed?: boolean
  body?: string | null
  /** The media type of the body. */
  mediaType?: string
  /** Names of variables. `$NAME` in `url` and `body` stands for the value of the variable. */
  variables?: string[]
}

const BEARER_OPTION = '-H "Authorization: Bearer $MUSTER_API_KEY"'

const KEY_OPTION = '-H "Idempotency-Key: $(openssl rand -hex 16)"'

/** A request to the API. The shell takes the API key from the environment. */
export function apiCurlCommand(request: ApiRequest): string {
  const { method, url, query = [], isKeyed = false, body = null, variables = [] } = request
  const { mediaType = 'application/json' } = request
  return join([
    `curl ${methodOption(method, query.length > 0, body !== null)}${urlArgument(url, variables)}`,
    BEARER_OPTION,
    ...(isKeyed ? [KEY_OPTION] : []),
    ...query.map(([name, value]) => `--data-urlencode ${quoteForShell(`${name}=${value}`)}`),
    ...(body === null
      ? []
      : [headerOption('Content-Type', mediaType), bodyOption(body, variables)]),
  ])
}

/** A command that sends a delivery as the service does. Besides the body of the response, it prints
 *  the status and headers. */
export function deliveryCurlCommand(
  url: string,
  headers: Record<string, string>,
  body: string,
): string {
  return join([
    `curl -i -X POST ${urlArgument(url)}`,
    ...Object.entries(headers).map(([name, value]) => headerOption(name, value)),
    bodyOption(body),
  ])
}

function join(parts: string[]): string {
  return parts.join(' \\\n  ')
}

/** Without -g, curl takes the brackets of `page[size]` for a pattern. */
function urlArgument(url: string, variables: string[] = []): string {
  return `${/[[\]{}]/.test(url) ? '-g ' : ''}${quoteWithVariables(url, variables)}`
}

function methodOption(method: string, hasQuery: boolean, hasBody: boolean): string {
  if (hasQuery) return '-G '
  if (method === 'HEAD') return '--head '
  const defaultMethod = hasBody ? 'POST' : 'GET'
  return method === defaultMethod ? '' : `-X ${method} `
}

function headerOption(name: string, value: string): string {
  return `-H ${quoteForShell(`${name}: ${value}`)}`
}

/** Uses --data-raw because -d treats a leading @ as a file name. */
function bodyOption(body: string, variables: string[] = []): string {
  return `--data-raw ${quoteWithVariables(body, variables)}`
}
