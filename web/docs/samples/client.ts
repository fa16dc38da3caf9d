/** Samples for the typed client of this repository. */
import { singleQuoted, valueWriter } from './notation.ts'
import { hasJson, listPreparations, type SampleRequest } from './request.ts'
import { typescriptNotation } from './typescript.ts'

/** The types of the client do not allow `undefined` for an ID, and a variable of `process.env` may
 *  be undefined. */
const write = valueWriter({
  ...typescriptNotation,
  variable: (name) => `process.env.${name} ?? ''`,
})

export function client(request: SampleRequest): string {
  const { baseUrl } = request
  return [
    ...listPreparations(request).map((sentence) => `// ${sentence}`),
    "import { createMuster } from '@muster/client'",
    '',
    'const muster = createMuster({',
    `  baseUrl: ${singleQuoted(baseUrl)},`,
    "  apiKey: process.env.MUSTER_API_KEY ?? '',",
    '})',
    ...callOf(request),
  ].join('\n')
}

/** A list is read to its end. */
function callOf(request: SampleRequest): string[] {
  const { method, template, query, responseFormat } = request
  const path = singleQuoted(template)
  if (query.some(([name]) => name === 'page[size]'))
    return [
      `for await (const record of muster.records(${path}, ${write(Object.fromEntries(query))}))`,
      '  console.log(record)',
    ]
  const init = initOf(request)
  const options = Object.keys(init).length === 0 ? '' : `, ${write(init)}`
  const result = responseFormat === 'none' ? 'response' : 'data'
  return [
    `const { ${result} } = await muster.${method}(${path}${options})`,
    `console.log(${responseFormat === 'none' ? 'response.status' : 'data'})`,
  ]
}

/** The options of a call, which openapi-fetch calls `init`. The client sends an `Idempotency-Key`
 *  itself. */
function initOf(request: SampleRequest): object {
  const { pathValues, query, body, mediaType, responseFormat } = request
  const isFile = body !== undefined && !hasJson(request)
  const params = {
    ...(pathValues.length > 0 && { path: Object.fromEntries(pathValues) }),
    ...(query.length > 0 && { query: Object.fromEntries(query) }),
  }
  return {
    ...(Object.keys(params).length > 0 && { params }),
    ...(body !== undefined && { body }),
    ...(isFile && { headers: { 'Content-Type': mediaType } }),
    ...(responseFormat === 'text' && { parseAs: 'text' }),
  }
}
