import { joinLines, type Notation, queryText, single, valueWriter } from './notation.ts'
import { fillPath, listPreparations, type SampleRequest } from './request.ts'

export const typescriptNotation: Notation = {
  null: 'null',
  true: 'true',
  false: 'false',
  string: single,
  key: (text) => (/^[A-Za-z_$][\w$]*$/.test(text) ? text : single(text)),
  variable: (name) => `process.env.${name}`,
  object: ['{', '}'],
  indent: '  ',
}

const write = valueWriter(typescriptNotation)

export function typescript(request: SampleRequest): string {
  const { method, query, headers, body, responseFormat } = request
  const lines = [
    `Authorization: \`Bearer \${process.env.MUSTER_API_KEY}\``,
    ...(body === undefined ? [] : ["'Content-Type': 'application/json'"]),
    ...headers.map(([name, text]) => `${single(name)}: ${single(text)}`),
  ]
  return joinLines([
    ...listPreparations(request).map((sentence) => `// ${sentence}`),
    query.length > 0 &&
      `const query = new URLSearchParams(${write(Object.fromEntries(queryText(query)))})`,
    `const response = await fetch(${urlOf(request)}, {`,
    method !== 'GET' && `  method: '${method}',`,
    ...(lines.length === 1
      ? [`  headers: { ${lines} },`]
      : ['  headers: {', ...lines.map((line) => `    ${line},`), '  },']),
    body !== undefined && `  body: JSON.stringify(${write(body, '  ')}),`,
    '})',
    `if (!response.ok) throw new Error(\`\${response.status}: \${await response.text()}\`)`,
    {
      json: 'console.log(await response.json())',
      text: 'console.log(await response.text())',
      none: 'console.log(response.status)',
    }[responseFormat],
  ])
}

function urlOf(request: SampleRequest): string {
  const path = fillPath(request, ({ name }) => `\${process.env.${name}}`)
  const url = request.baseUrl + path + (request.query.length > 0 ? `?\${query}` : '')
  return url.includes('$') ? `\`${url}\`` : single(url)
}
