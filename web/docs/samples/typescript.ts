import { joinLines, type Notation, queryPairs, singleQuoted, valueWriter } from './notation.ts'
import { fillPath, hasJson, listPreparations, type SampleRequest } from './request.ts'

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/

export const typescriptNotation: Notation = {
  null: 'null',
  true: 'true',
  false: 'false',
  string: singleQuoted,
  key: (text) => (IDENTIFIER.test(text) ? text : singleQuoted(text)),
  variable: (name) => `process.env.${name}`,
  object: ['{', '}'],
  indent: '  ',
}

const write = valueWriter(typescriptNotation)

export function typescript(request: SampleRequest): string {
  const { method, query, isKeyed, body, mediaType, responseFormat } = request
  const data = hasJson(request) ? `JSON.stringify(${write(body, '  ')})` : write(body ?? '')
  const headerEntries = [
    `Authorization: \`Bearer \${process.env.MUSTER_API_KEY}\``,
    ...(body === undefined ? [] : [`'Content-Type': '${mediaType}'`]),
    ...(isKeyed ? ["'Idempotency-Key': crypto.randomUUID()"] : []),
  ]
  return joinLines([
    ...listPreparations(request).map((sentence) => `// ${sentence}`),
    query.length > 0 &&
      `const query = new URLSearchParams(${write(Object.fromEntries(queryPairs(query)))})`,
    `const response = await fetch(${urlExpression(request)}, {`,
    method !== 'GET' && `  method: '${method}',`,
    ...(headerEntries.length === 1
      ? [`  headers: { ${headerEntries[0]} },`]
      : ['  headers: {', ...headerEntries.map((entry) => `    ${entry},`), '  },']),
    body !== undefined && `  body: ${data},`,
    '})',
    `if (!response.ok) throw new Error(\`\${response.status}: \${await response.text()}\`)`,
    {
      json: 'console.log(await response.json())',
      text: 'console.log(await response.text())',
      none: 'console.log(response.status)',
    }[responseFormat],
  ])
}

function urlExpression(request: SampleRequest): string {
  const path = fillPath(request, ({ name }) => `\${process.env.${name}}`)
  const url = request.baseUrl + path + (request.query.length > 0 ? `?\${query}` : '')
  return url.includes('$') ? `\`${url}\`` : singleQuoted(url)
}
