import { double, joinLines, queryText, valueWriter } from './notation.ts'
import { fillPath, listPreparations, type SampleRequest } from './request.ts'

const write = valueWriter({
  null: 'None',
  true: 'True',
  false: 'False',
  string: double,
  key: double,
  variable: (name) => `os.environ["${name}"]`,
  object: ['{', '}'],
  indent: '    ',
})

export function python(request: SampleRequest): string {
  const { method, query, headers, body, responseFormat } = request
  return joinLines([
    ...listPreparations(request).map((sentence) => `# ${sentence}`),
    (body !== undefined || responseFormat === 'json') && 'import json',
    'import os',
    query.length > 0 && 'from urllib.parse import urlencode',
    'from urllib.request import Request, urlopen',
    '',
    query.length > 0 && `query = urlencode(${write(Object.fromEntries(queryText(query)))})`,
    'request = Request(',
    `    ${urlOf(request)},`,
    method !== 'GET' && `    method="${method}",`,
    '    headers={',
    `        "Authorization": f"Bearer {os.environ['MUSTER_API_KEY']}",`,
    body !== undefined && '        "Content-Type": "application/json",',
    ...headers.map(([name, text]) => `        ${double(name)}: ${double(text)},`),
    '    },',
    body !== undefined && `    data=json.dumps(${write(body, '    ')}).encode(),`,
    ')',
    'with urlopen(request) as response:',
    {
      json: '    print(json.load(response))',
      text: '    print(response.read().decode())',
      none: '    print(response.status)',
    }[responseFormat],
  ])
}

/** Before Python 3.12, an expression in a text cannot contain the quotation marks of the text. */
function urlOf(request: SampleRequest): string {
  const path = fillPath(request, ({ name }) => `{os.environ['${name}']}`)
  const url = request.baseUrl + path + (request.query.length > 0 ? '?{query}' : '')
  return url.includes('{') ? `f"${url}"` : double(url)
}
