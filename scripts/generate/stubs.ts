/** Stubs of an operation: a handler that responds with 501, and a test that fails until the handler
 *  is written. */
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { commentText, literal, quote } from './typescript-text.ts'

/** The texts of the stubs by path: handlers/<operationId>.ts and
 *  test/handlers/<operationId>.test.ts for each operation whose ID is not in `handlers`. */
export function renderStubs({ operations }: Contract, handlers: string[]): Record<string, string> {
  const missing = operations.filter(({ id }) => !handlers.includes(id))
  return Object.fromEntries(
    missing.flatMap((operation) => [
      [`handlers/${operation.id}.ts`, renderHandler(operation)],
      [`test/handlers/${operation.id}.test.ts`, renderTest(operation)],
    ]),
  )
}

function renderHandler({ id, method, path, summary, emits }: Operation): string {
  const events = emits.length > 0 ? ` Emits ${emits.join(', ')}.` : ''
  return `import { notImplemented } from './call.ts'

/** ${commentText(`${method.toUpperCase()} ${path}: ${summary}.${events}`)}
 *  Replace it by \`export async function ${id}(call: Call<'${id}'>): Promise<…>\`. See
 *  docs/new-resource.md. */
export const ${id} = notImplemented('${id}')
`
}

function renderTest({ id, method, path, parameters, body, success }: Operation): string {
  const pathParameters = parameters.filter((parameter) => parameter.in === 'path')
  const url = pathParameters.reduce((text, { name, example }) => {
    return text.replace(`{${name}}`, String(example ?? name))
  }, path)
  const hint =
    pathParameters.length > 0 ? '  // Create the record first and use its ID in the path.\n' : ''
  const example = body && (body.example ?? {})
  const bodyLine = example === null ? '' : `  const body = ${literal(example, '  ')}\n`
  const options = example === null ? '{ key }' : '{ key, body }'
  return `import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../helpers.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(() => app[Symbol.asyncDispose]())

test('${id}: the example of the contract → ${success.status}', async () => {
  const { key } = await app.newAccount()
${hint}${bodyLine}  const path = ${quote(url)}
  const response = await app.call('${method.toUpperCase()}', path, ${options})
  expect(response).toMatchObject({ status: ${success.status} })
})
`
}
