/** A request as code: in each language with nothing but what comes with it, so that a sample runs where it is pasted.
 *  The generators on npm write the key into the code as a literal, ignore errors in Go and force TLS in Ruby. */

import { apiCurlCommand } from '../shared/curl.ts'
import type { ApiOperation } from './api.ts'
import type { Sample } from './code.ts'

interface Request {
  method: string
  /** Without the query. */
  url: string
  query: [name: string, value: string][]
  body: unknown
  /** What the answer is: JSON, some other text, or nothing. */
  answer: 'json' | 'text' | 'none'
}

/** The languages, in the order of the tabs. */
export function samplesOf(operation: ApiOperation, baseUrl: string): Sample[] {
  const request = requestOf(operation, baseUrl)
  return Object.entries({ curl, typescript, python, php, go, ruby }).map(([language, write]) => ({
    language,
    code: write(request),
  }))
}

/** With the examples of the contract: every path parameter, and the query parameters that have one. */
function requestOf(
  { method, path, parameters, body, success }: ApiOperation,
  baseUrl: string,
): Request {
  const exampleOf = (name: string) =>
    String(parameters.find((parameter) => parameter.name === name)?.example ?? `{${name}}`)
  const mediaTypes = Object.keys(success.content)
  return {
    method,
    url: baseUrl + path.replace(/\{(.*?)\}/g, (_, name) => exampleOf(name)),
    query: parameters
      .filter((given) => given.in === 'query' && given.example !== undefined)
      .map(({ name, example }) => [name, String(example)]),
    body: body?.example,
    answer:
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

function typescript({ method, url, query, body, answer }: Request): string {
  const value = valueWriter({
    null: 'null',
    true: 'true',
    false: 'false',
    string: single,
    key: scriptKey,
    object: ['{', '}'],
    indent: '  ',
  })
  const headers = [
    `Authorization: \`Bearer \${process.env.MUSTER_API_KEY}\``,
    ...(body === undefined ? [] : ["'Content-Type': 'application/json'"]),
  ]
  return [
    query.length > 0 && `const query = new URLSearchParams(${value(Object.fromEntries(query))})`,
    `const response = await fetch(${query.length > 0 ? `\`${url}?\${query}\`` : single(url)}, {`,
    method !== 'GET' && `  method: '${method}',`,
    ...(headers.length === 1
      ? [`  headers: { ${headers} },`]
      : ['  headers: {', ...headers.map((header) => `    ${header},`), '  },']),
    body !== undefined && `  body: JSON.stringify(${value(body, '  ')}),`,
    '})',
    `if (!response.ok) throw new Error(\`\${response.status}: \${await response.text()}\`)`,
    {
      json: 'console.log(await response.json())',
      text: 'console.log(await response.text())',
      none: 'console.log(response.status)',
    }[answer],
  ]
    .filter((line) => line !== false)
    .join('\n')
}

function python({ method, url, query, body, answer }: Request): string {
  const value = valueWriter({
    null: 'None',
    true: 'True',
    false: 'False',
    string: double,
    key: double,
    object: ['{', '}'],
    indent: '    ',
  })
  const imports = [body !== undefined || answer === 'json' ? 'import json' : undefined, 'import os']
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
    '    },',
    body !== undefined && `    data=json.dumps(${value(body, '    ')}).encode(),`,
    ')',
    'with urlopen(request) as response:',
    {
      json: '    print(json.load(response))',
      text: '    print(response.read().decode())',
      none: '    print(response.status)',
    }[answer],
  ]
    .filter((line) => line !== false && line !== undefined)
    .join('\n')
}

function php({ method, url, query, body, answer }: Request): string {
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
    }[answer],
  ]
    .filter((line) => line !== false)
    .join('\n')
}

function go({ method, url, query, body, answer }: Request): string {
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
    `\trequest, err := http.NewRequest("${method}", ${query.length > 0 ? `${double(`${url}?`)}+query.Encode()` : double(url)}, ${body === undefined ? 'nil' : 'body'})`,
    '\tif err != nil {',
    '\t\tlog.Fatal(err)',
    '\t}',
    '\trequest.Header.Set("Authorization", "Bearer "+os.Getenv("MUSTER_API_KEY"))',
    body !== undefined && '\trequest.Header.Set("Content-Type", "application/json")',
    '\tresponse, err := http.DefaultClient.Do(request)',
    '\tif err != nil {',
    '\t\tlog.Fatal(err)',
    '\t}',
    '\tdefer response.Body.Close()',
    '\tanswer, err := io.ReadAll(response.Body)',
    '\tif err != nil {',
    '\t\tlog.Fatal(err)',
    '\t}',
    '\tif response.StatusCode >= 400 {',
    '\t\tlog.Fatalf("%s: %s", response.Status, answer)',
    '\t}',
    answer === 'none'
      ? '\tfmt.Println(response.Status, string(answer))'
      : '\tfmt.Println(string(answer))',
    '}',
  ]
    .filter((line) => line !== false)
    .join('\n')
}

function ruby({ method, url, query, body, answer }: Request): string {
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
    (body !== undefined || answer === 'json') && 'require "json"',
    'require "net/http"',
    '',
    `uri = URI(${double(url)})`,
    query.length > 0 && `uri.query = URI.encode_www_form(${value(Object.fromEntries(query))})`,
    `request = Net::HTTP::${className}.new(uri)`,
    'request["Authorization"] = "Bearer #{ENV.fetch("MUSTER_API_KEY")}"',
    body !== undefined && 'request["Content-Type"] = "application/json"',
    body !== undefined && `request.body = JSON.generate(${value(body)})`,
    'response = Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == "https") do |http|',
    '  http.request(request)',
    'end',
    'raise "#{response.code}: #{response.body}" unless response.is_a?(Net::HTTPSuccess)',
    {
      json: 'puts JSON.pretty_generate(JSON.parse(response.body))',
      text: 'puts response.body',
      none: 'puts response.code',
    }[answer],
  ]
    .filter((line) => line !== false)
    .join('\n')
}

/** How a language writes a value of JSON. */
interface Notation {
  null: string
  true: string
  false: string
  string(text: string): string
  key(text: string): string
  /** Between a key and its value. A colon by default. */
  arrow?: string
  object: [open: string, close: string]
  /** An object without members, where it does not follow from `object`. */
  empty?: string
  indent: string
}

const WIDTH = 80

/** On one line where it fits. */
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
      indent.length + line.length <= WIDTH &&
      (isList || parts.length === 1)
    )
      return line
    return `${open}\n${parts.map((part) => `${inner}${part},\n`).join('')}${indent}${close}`
  }
}

function single(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`
}

/** Ruby alone would take `#{` for code: none of our examples has it, and a test runs them all. */
function double(text: string): string {
  return JSON.stringify(text)
}

function scriptKey(text: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(text) ? text : single(text)
}
