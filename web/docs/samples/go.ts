import { doubleQuoted, joinLines, queryPairs } from './notation.ts'
import { bodyText, fillPath, hasJson, listPreparations, type SampleRequest } from './request.ts'

export function go(request: SampleRequest): string {
  const { method, query, isKeyed, body, mediaType, responseFormat } = request
  const imports = ['fmt', 'io', 'log', 'net/http', 'os']
  if (isKeyed) imports.push('crypto/rand')
  if (query.length > 0) imports.push('net/url')
  if (body !== undefined) imports.push('strings')
  const bodyArgument = body === undefined ? 'nil' : 'body'
  return joinLines([
    ...listPreparations(request).map((sentence) => `// ${sentence}`),
    'package main',
    '',
    'import (',
    ...imports.sort().map((name) => `\t"${name}"`),
    ')',
    '',
    'func main() {',
    ...(query.length > 0
      ? [
          '\tquery := url.Values{}',
          ...queryPairs(query).map(
            ([name, text]) => `\tquery.Set(${doubleQuoted(name)}, ${doubleQuoted(text)})`,
          ),
        ]
      : []),
    body !== undefined && `\tbody := strings.NewReader(${bodyExpression(request)})`,
    `\trequest, err := http.NewRequest("${method}", ${urlExpression(request)}, ${bodyArgument})`,
    '\tif err != nil {',
    '\t\tlog.Fatal(err)',
    '\t}',
    '\trequest.Header.Set("Authorization", "Bearer "+os.Getenv("MUSTER_API_KEY"))',
    body !== undefined && `\trequest.Header.Set("Content-Type", "${mediaType}")`,
    isKeyed && '\trequest.Header.Set("Idempotency-Key", rand.Text())',
    '\tresponse, err := http.DefaultClient.Do(request)',
    '\tif err != nil {',
    '\t\tlog.Fatal(err)',
    '\t}',
    '\tdefer response.Body.Close()',
    '\tresponseBody, err := io.ReadAll(response.Body)',
    '\tif err != nil {',
    '\t\tlog.Fatal(err)',
    '\t}',
    '\tif response.StatusCode >= 400 {',
    '\t\tlog.Fatalf("%s: %s", response.Status, responseBody)',
    '\t}',
    responseFormat === 'none'
      ? '\tfmt.Println(response.Status, string(responseBody))'
      : '\tfmt.Println(string(responseBody))',
    '}',
  ])
}

function urlExpression(request: SampleRequest): string {
  const path = fillPath(request, ({ name }) => `"+os.Getenv("${name}")+"`)
  // If the path ends with a variable, removes the empty string after it.
  const url = `"${request.baseUrl}${path}"`.replace(/\+""$/, '')
  return request.query.length > 0 ? `${url}+"?"+query.Encode()` : url
}

/** A file as a string, or the JSON of the body as raw strings, joined with the values of the variables. */
function bodyExpression(request: SampleRequest): string {
  if (!hasJson(request)) return doubleQuoted(bodyText(request))
  let text = bodyText(request).replaceAll('\n', '\n\t').replaceAll('`', '` + "`" + `')
  for (const { name } of request.variables)
    text = text.replaceAll(`$${name}`, `\` + os.Getenv("${name}") + \``)
  return `\`${text}\``
}
