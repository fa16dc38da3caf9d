import { doubleQuoted, joinLines, queryPairs, valueWriter } from './notation.ts'
import { fillPath, hasJson, listPreparations, type SampleRequest } from './request.ts'

const write = valueWriter({
  null: 'None',
  true: 'True',
  false: 'False',
  string: doubleQuoted,
  key: doubleQuoted,
  variable: (name) => `os.environ["${name}"]`,
  object: ['{', '}'],
  indent: '    ',
})

export function python(request: SampleRequest): string {
  const { method, query, isKeyed, body, mediaType, responseFormat } = request
  const data = hasJson(request) ? `json.dumps(${write(body, '    ')})` : write(body ?? '')
  return joinLines([
    ...listPreparations(request).map((sentence) => `# ${sentence}`),
    (hasJson(request) || responseFormat === 'json') && 'import json',
    'import os',
    'import sys',
    isKeyed && 'import uuid',
    'from urllib.error import HTTPError',
    query.length > 0 && 'from urllib.parse import urlencode',
    'from urllib.request import Request, urlopen',
    '',
    query.length > 0 && `query = urlencode(${write(Object.fromEntries(queryPairs(query)))})`,
    'request = Request(',
    `    ${urlExpression(request)},`,
    method !== 'GET' && `    method="${method}",`,
    '    headers={',
    `        "Authorization": f"Bearer {os.environ['MUSTER_API_KEY']}",`,
    body !== undefined && `        "Content-Type": "${mediaType}",`,
    isKeyed && '        "Idempotency-Key": str(uuid.uuid4()),',
    '    },',
    body !== undefined && `    data=${data}.encode(),`,
    ')',
    'try:',
    '    with urlopen(request) as response:',
    {
      json: '        print(json.load(response))',
      text: '        print(response.read().decode())',
      none: '        print(response.status)',
    }[responseFormat],
    'except HTTPError as error:',
    '    sys.exit(f"{error.code}: {error.read().decode()}")',
  ])
}

/** The expressions in `f"…"` use single quotation marks, because before Python 3.12 they cannot
 *  contain double ones. */
function urlExpression(request: SampleRequest): string {
  const path = fillPath(request, ({ name }) => `{os.environ['${name}']}`)
  const url = request.baseUrl + path + (request.query.length > 0 ? '?{query}' : '')
  return url.includes('{') ? `f"${url}"` : doubleQuoted(url)
}
