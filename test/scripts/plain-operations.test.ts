/** What the toolchain reads from an operation of any OpenAPI document. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Operation } from '../../scripts/model/operations.ts'
import { toOperationId } from '../../scripts/model/plain-operations.ts'
import { readAnyContract } from '../../scripts/service/read.ts'

/** Reads a document with one operation. `operation` and `components` are YAML in one line. */
async function readOperation(operation: string, components = '{}'): Promise<Operation> {
  const root = await mkdtemp(join(tmpdir(), 'operation-'))
  const document = `openapi: 3.0.3
info: { title: Pets, version: '1' }
paths: { /pets: { get: ${operation} } }
components: ${components}
`
  await writeFile(join(root, 'openapi.yaml'), document)
  const { operations } = await readAnyContract(root).finally(() => rm(root, { recursive: true }))
  return operations[0] as Operation
}

test.each([
  { operationId: 'issues/list-for-repo', want: 'issuesListForRepo' },
  { operationId: 'ListPets', want: 'listPets' },
  { operationId: undefined, want: 'getUsersUserId' },
  { operationId: '', want: 'getUsersUserId' },
  { operationId: 'delete', want: 'deleteOperation' },
  // A module is in strict mode: it cannot declare a function with these names.
  { operationId: 'eval', want: 'evalOperation' },
  { operationId: 'arguments', want: 'argumentsOperation' },
  { operationId: '2fa', want: 'op2faOperation' },
])('the operation $operationId has the function $want', ({ operationId, want }) => {
  expect(toOperationId(operationId, 'get', '/users/{user_id}')).toBe(want)
})

test.each([
  { statuses: ['404', '201', '200', 'default'], want: [200, '200'] },
  { statuses: ['2XX', 'default'], want: [200, '2XX'] },
  { statuses: ['default', '2XX'], want: [200, '2XX'] },
  { statuses: ['default', '2xx'], want: [200, '2xx'] },
  { statuses: ['404', 'default'], want: [200, 'default'] },
  // `default` describes the errors of an operation that redirects.
  { statuses: ['303', '302', 'default'], want: [302, '302'] },
  { statuses: ['304', 'default'], want: [200, 'default'] },
  { statuses: ['404'], want: [200, ''] },
  { statuses: ['4XX'], want: [200, ''] },
])('of the responses $statuses, success is $want', async ({ statuses, want }) => {
  const responses = statuses.map((status) => `'${status}': { description: '${status}' }`).join(', ')
  const { success } = await readOperation(`{ responses: { ${responses} } }`)
  expect([success.status, success.description]).toEqual(want)
})

const COMPONENTS = '{ examples: { short: { value: a }, long: { value: abc } } }'
const REFERENCES =
  "{ one: { $ref: '#/components/examples/long' }, two: { $ref: '#/components/examples/short' } }"

const BESIDE_SCHEMA = [
  { name: 'example', part: 'schema: {}, example: abc' },
  { name: 'the first of examples', part: 'schema: {}, examples: { one: { value: abc } }' },
  { name: 'a reference in examples', part: `schema: {}, examples: ${REFERENCES}` },
]

test.each([
  ...BESIDE_SCHEMA,
  ...BESIDE_SCHEMA.map(({ name, part }) => ({
    name: `${name} of the media type`,
    part: `content: { application/json: { ${part} } }`,
  })),
])('reads the example of a parameter: $name', async ({ part }) => {
  const { parameters } = await readOperation(
    `{ parameters: [{ name: q, in: query, ${part} }], responses: { '204': { description: None. } } }`,
    COMPONENTS,
  )
  expect(parameters[0]?.example).toBe('abc')
})

test.each(BESIDE_SCHEMA)('reads the example of a response header: $name', async ({ part }) => {
  const { success } = await readOperation(
    `{ responses: { '204': { description: None., headers: { X-Pets: { ${part} } } } } }`,
    COMPONENTS,
  )
  expect(success.headers['x-pets']?.example).toBe('abc')
})
