/** Writes a request as code in several languages. Each sample uses only the standard library.
 *  Generators on npm put the key into the code as a literal, ignore errors in Go and force TLS in Ruby. */
import { apiCurlCommand } from '../shared/curl.ts'
import type { Api, ApiOperation } from './api.ts'
import type { CodeSample } from './code.ts'
import { plainCurl } from './credential.ts'

interface Request {
  method: string
  /** Without the query. */
  url: string
  query: [name: string, value: string][]
  /** In addition to the API key and the type of the body. */
  headers: [name: string, value: string][]
  body: unknown
  /** The format of the response. */
  responseFormat: 'json' | 'text' | 'none'
}

/** In the order of the tabs. The operations of a plain document have curl only: the other languages are written
 *  for an API key and JSON. */
export function writeSamples(operation: ApiOperation, baseUrl: string, api: Api): CodeSample[] {
  const request = exampleRequest(operation, baseUrl)
  if (api.isPlain) return [{ language: 'curl', code: plainCurl(api, operation, request) }]
  return Object.entries({ curl, typescript, python, php, go, ruby }).map(([language, write]) => ({
    language,
    code: write(request),
  }))
}

/** Uses the contract's examples for the path parameters, and for query parameters with an example. */
function exampleRequest(
  { id, method, path, parameters, body, success }: ApiOperation,
  baseUrl: string,
): Request {
  const pathExample = (name: string) =>
    String(parameters.find((parameter) => parameter.name === name)?.example ?? `{${name}}`)
  const mediaTypes = Object.keys(success.content)
  return {
    method,
    url: baseUrl + path.replace(/\{(.*?)\}/g, (_, name) => pathExample(name)),
    query: parameters
      .filter((parameter) => parameter.in === 'query' && parameter.example !== undefined)
      .map(({ name, example }) => [name, String(example)]),
    headers: parameters
      .filter(({ name }) => name === 'Idempotency-Key')
      .map(({ name }) => [name, `${id}-4711`]),
    body: body?.example,
    responseFormat:
      mediaTypes.length === 0
        ? 'none'
        : mediaTypes.every((type) => type === 'application/json')
          ? 'json'
          : 'text',
  }
}

function curl({ body, ...request }: Request): string {
  return apiCurlCommand({
    ...request,
    body: body === undefined ? null : JSON.stringify(body, null, 2),
  })
}

function typescript({ method, url, query, headers, body, responseFormat }: Request): string {
  const value = valueWriter({
    null: 'null',
    true: 'true',
    false: 'false',
    string: single,
    key: scriptKey,
    object: ['{', '}'],
    indent: '  ',
  })
  const lines = [
    `Authorization: \`Bearer \${process.env.MUSTER_API_KEY}\``,
    ...(body === undefined ? [] : ["'Content-Type': 'application/json'"]),
    ...headers.map(([name, text]) => `${single(name)}: ${single(text)}`),
  ]
  return [
    query.length > 0 && `const query = new URLSearchParams(${value(Object.fromEntries(query))})`,
    `const response = await fetch(${query.length > 0 ? `\`${url}?\${query}\`` : single(url)}, {`,
    method !== 'GET' && `  method: '${method}',`,
    ...(lines.length === 1
      ? [`  headers: { ${lines} },`]
      : ['  headers: {', ...lines.map((line) => `    ${line},`), '  },']),
    body !== undefined && `  body: JSON.stringify(${value(body, '  ')}),`,
    '})',
    `if (!response.ok) throw new Error(\`\${response.status}: \${await response.text()}\`)`,
    {
      json: 'console.log(await response.json())',
      text: 'console.log(await response.text())',
      none: 'console.log(response.status)',
    }[responseFormat],
  ]
    .filter((line) => line !== false)
    .join('\n')
}

function python({ method, url, query, headers, body, responseFormat }: Request): string {
  const value = valueWriter({
    null: 'None',
    true: 'True',
    false: 'False',
    string: double,
    key: double,
    object: ['{', '}'],
    indent: '    ',
  })
  const imports = [
    body !== undefined || responseFormat === 'json' ? 'import json' : undefined,
    'import os',
  ]
  return [
    ...imports,
    query.length > 0 && 'from urllib.parse import urlencode',
    'from urllib.request import Request, urlopen',
    '',
    query.length > 0 && `query = urlencode(${value(Object.fromEntries(query))})`,
    'request = Request(',
    `    ${query.length > 0 ? `f"${url}?{query}"` : double(url)},`,
    method !== 'GET' && `    method="${method}",`,
    '    headers={',
    `        "Authorization": f"Bearer {os.environ['MUSTER_API_KEY']}",`,
    body !== undefined && '        "Content-Type": "application/json",',
    ...headers.map(([name, text]) => `        ${double(name)}: ${double(text)},`),
    '    },',
    body !== undefined && `    data=json.dumps(${value(body, '    ')}).encode(),`,
    ')',
    'with urlopen(request) as response:',
    {
      json: '    print(json.load(response))',
      text: '    print(response.read().decode())',
      none: '    print(response.status)',
    }[responseFormat],
  ]
    .filter((line) => line !== false && line !== undefined)
    .join('\n')
}

function php({ method, url, query, headers, body, responseFormat }: Request): string {
  const value = valueWriter({
    null: 'null',
    true: 'true',
    false: 'false',
    string: single,
    key: single,
    arrow: ' => ',
    object: ['[', ']'],
    empty: 'new stdClass()',
    indent: '    ',
  })
  return [
    '<?php',
    query.length > 0 ? `$query = http_build_query(${value(Object.fromEntries(query))});` : false,
    `$curl = curl_init(${query.length > 0 ? `"${url}?$query"` : single(url)});`,
    'curl_setopt_array($curl, [',
    method !== 'GET' && `    CURLOPT_CUSTOMREQUEST => '${method}',`,
    '    CURLOPT_HTTPHEADER => [',
    "        'Authorization: Bearer ' . getenv('MUSTER_API_KEY'),",
    body !== undefined && "        'Content-Type: application/json',",
    ...headers.map(([name, text]) => `        ${single(`${name}: ${text}`)},`),
    '    ],',
    body !== undefined && `    CURLOPT_POSTFIELDS => json_encode(${value(body, '    ')}),`,
    '    CURLOPT_RETURNTRANSFER => true,',
    ']);',
    '$body = curl_exec($curl);',
    'if ($body === false) throw new RuntimeException(curl_error($curl));',
    '$status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);',
    'if ($status >= 400) throw new RuntimeException("$status: $body");',
    {
      json: 'print_r(json_decode($body, true));',
      text: 'echo $body;',
      none: 'echo $status, PHP_EOL;',
    }[responseFormat],
  ]
    .filter((line) => line !== false)
    .join('\n')
}

function go({ method, url, query, headers, body, responseFormat }: Request): string {
  const target = query.length > 0 ? `${double(`${url}?`)}+query.Encode()` : double(url)
  const imports = ['fmt', 'io', 'log', 'net/http', 'os']
  if (query.length > 0) imports.push('net/url')
  if (body !== undefined) imports.push('strings')
  const bodyText = body === undefined ? '' : JSON.stringify(body, null, 2).replaceAll('\n', '\n\t')
  return [
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
          ...query.map(([name, text]) => `\tquery.Set(${double(name)}, ${double(text)})`),
        ]
      : []),
    body !== undefined &&
      `\tbody := strings.NewReader(\`${bodyText.replaceAll('`', '` + "`" + `')}\`)`,
    `\trequest, err := http.NewRequest("${method}", ${target}, ${body === undefined ? 'nil' : 'body'})`,
    '\tif err != nil {',
    '\t\tlog.Fatal(err)',
    '\t}',
    '\trequest.Header.Set("Authorization", "Bearer "+os.Getenv("MUSTER_API_KEY"))',
    body !== undefined && '\trequest.Header.Set("Content-Type", "application/json")',
    ...headers.map(([name, text]) => `\trequest.Header.Set(${double(name)}, ${double(text)})`),
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
  ]
    .filter((line) => line !== false)
    .join('\n')
}

function ruby({ method, url, query, headers, body, responseFormat }: Request): string {
  const value = valueWriter({
    null: 'nil',
    true: 'true',
    false: 'false',
    string: double,
    key: double,
    arrow: ' => ',
    object: ['{', '}'],
    indent: '  ',
  })
  const className = method.charAt(0) + method.slice(1).toLowerCase()
  return [
    (body !== undefined || responseFormat === 'json') && 'require "json"',
    'require "net/http"',
    '',
    `uri = URI(${double(url)})`,
    query.length > 0 && `uri.query = URI.encode_www_form(${value(Object.fromEntries(query))})`,
    `request = Net::HTTP::${className}.new(uri)`,
    'request["Authorization"] = "Bearer #{ENV.fetch("MUSTER_API_KEY")}"',
    body !== undefined && 'request["Content-Type"] = "application/json"',
    ...headers.map(([name, text]) => `request[${double(name)}] = ${double(text)}`),
    body !== undefined && `request.body = JSON.generate(${value(body)})`,
    'response = Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == "https") do |http|',
    '  http.request(request)',
    'end',
    'raise "#{response.code}: #{response.body}" unless response.is_a?(Net::HTTPSuccess)',
    {
      json: 'puts JSON.pretty_generate(JSON.parse(response.body))',
      text: 'puts response.body',
      none: 'puts response.code',
    }[responseFormat],
  ]
    .filter((line) => line !== false)
    .join('\n')
}

/** The syntax of JSON values in a language. */
interface Notation {
  null: string
  true: string
  false: string
  string(text: string): string
  key(text: string): string
  /** The separator of key and value. A colon by default. */
  arrow?: string
  object: [open: string, close: string]
  /** An empty object, if it differs from the two brackets of `object`. */
  empty?: string
  indent: string
}

const MAX_LINE_LENGTH = 80

/** Writes a value on one line if it fits. */
function valueWriter(notation: Notation): (value: unknown, indent?: string) => string {
  const { arrow = ': ', object, empty } = notation
  return function write(value: unknown, indent = ''): string {
    if (value === null || typeof value === 'boolean')
      return notation[String(value) as 'null' | 'true' | 'false']
    if (typeof value === 'number') return String(value)
    if (typeof value === 'string') return notation.string(value)
    const isList = Array.isArray(value)
    const [open, close] = isList ? ['[', ']'] : object
    const inner = indent + notation.indent
    const parts = isList
      ? value.map((item) => write(item, inner))
      : Object.entries(value as object).map(
          ([key, item]) => `${notation.key(key)}${arrow}${write(item, inner)}`,
        )
    if (parts.length === 0) return isList ? '[]' : (empty ?? open + close)
    const pad = open === '{' ? ' ' : ''
    const line = `${open}${pad}${parts.join(', ')}${pad}${close}`
    if (
      !line.includes('\n') &&
      indent.length + line.length <= MAX_LINE_LENGTH &&
      (isList || parts.length === 1)
    )
      return line
    return `${open}\n${parts.map((part) => `${inner}${part},\n`).join('')}${indent}${close}`
  }
}

function single(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`
}

/** Ruby would run `#{` in a string as code. A test runs all samples, and no example contains it. */
function double(text: string): string {
  return JSON.stringify(text)
}

function scriptKey(text: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(text) ? text : single(text)
}
