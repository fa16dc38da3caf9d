import { apiCurlCommand } from '../../shared/curl.ts'
import { queryPairs } from './notation.ts'
import {
  bodyText,
  describeVariable,
  fillPath,
  type IdVariable,
  type SampleRequest,
} from './request.ts'

/** The request as a curl command. If it creates a record, the sample also sets the variable for the
 *  record's ID. */
export function curl(request: SampleRequest): string {
  const { method, baseUrl, query, isKeyed, body, mediaType, createdVariable } = request
  // curl adds the query itself only to a GET.
  const search = method === 'GET' ? '' : new URLSearchParams(queryPairs(query)).toString()
  const command = apiCurlCommand({
    method,
    url: baseUrl + fillPath(request, ({ name }) => `$${name}`) + (search && `?${search}`),
    query: method === 'GET' ? queryPairs(query) : [],
    isKeyed,
    body: body === undefined ? null : bodyText(request),
    mediaType,
    variables: request.variables.map(({ name }) => name),
  })
  return [
    ...request.variables.map((variable) => `# ${describeSource(variable)}`),
    createdVariable === undefined ? command : storeId(command, createdVariable),
  ].join('\n')
}

function describeSource(variable: IdVariable): string {
  const { name, source, isOfCreatedRecord } = variable
  if (!isOfCreatedRecord) return describeVariable(variable)
  return `"${source.summary}" sets ${name} in the same shell.`
}

/** Uses `printf`: the `echo` of some shells would replace escape sequences of the response. */
function storeId(command: string, name: string): string {
  return [
    `response=$(${command})`,
    `printf '%s\\n' "$response"`,
    '# jq reads the ID from the response: https://jqlang.org',
    `export ${name}=$(printf '%s' "$response" | jq -r .id)`,
  ].join('\n')
}
