/** The test of a resource's operations, from the examples of the contract. */
import type { MediaType, Operation } from '../../model/operations.ts'
import { fail } from '../../model/source.ts'
import { literal } from '../typescript-text.ts'
import { emitted } from './handlers.ts'
import type { Resource } from './resource.ts'

export function writeTest(resource: Resource): string {
  const { update, delete: deletion } = resource
  const names = [
    ...(update || deletion ? ['expectSuccess'] : []),
    ...['eventsAbout', 'requestExample'],
  ]
  return `import { beforeAll, expect, test } from 'vitest'
import { type Client, sharedApp } from '../helpers.ts'
import { ${update ? 'expectRead, expectUpdate' : 'expectRead'} } from './checks.ts'
import { ${names.join(', ')} } from './new-records.ts'

let client: Client

const app = sharedApp()
beforeAll(async () => {
  client = app.as(await app.newAccount())
})
${writeCreateTest(resource)}${writeUpdateTest(resource)}${writeDeleteTest(resource)}`
}

function writeCreateTest({ create, get, slug, fields }: Resource): string {
  const initial = fields
    .filter(({ creation, initial }) => creation === undefined && initial !== undefined)
    .map(({ name, initial }) => [name, initial])
  const expected = `{ ...example, ${literal(Object.fromEntries(initial)).slice(1, -1)} }`
  return `
test('${create.id}, ${get.id}: the example of the contract → 201, and a GET returns the same', async () => {
  const example = ${exampleOf(create.body)}
  const answer = await client.post('/${slug}', example)
  expect(answer).toMatchObject({ status: 201, body: ${initial.length === 0 ? 'example' : expected} })
  await expectRead(client, \`/${slug}/\${answer.body.id}\`, answer)
  expect(await eventsAbout(client, answer.body.id)).toEqual(${events(create)})
})
`
}

function writeUpdateTest({ create, update, slug }: Resource): string {
  if (!update) return ''
  return `
test('${update.id}: the example of the contract changes only its fields, with one event', async () => {
  const { id } = await expectSuccess(client.post('/${slug}', ${exampleOf(create.body)}))
  await expectUpdate(client, \`/${slug}/\${id}\`, ${exampleOf(update.body)})
  expect((await client.patch(\`/${slug}/\${id}\`, {})).status).toBe(200)
  expect(await eventsAbout(client, id)).toEqual(${events(create, update)})
})
`
}

function writeDeleteTest({ create, delete: deletion, slug }: Resource): string {
  if (!deletion) return ''
  return `
test('${deletion.id}: the record is no longer there', async () => {
  const { id } = await expectSuccess(client.post('/${slug}', ${exampleOf(create.body)}))
  expect((await client.delete(\`/${slug}/\${id}\`)).status).toBe(204)
  expect((await client.get(\`/${slug}/\${id}\`)).status).toBe(404)
  expect(await eventsAbout(client, id)).toEqual(${events(create, deletion)})
})
`
}

const events = (...operations: Operation[]): string =>
  literal(operations.map(emitted).filter((type) => type !== ''))

/** The code that reads the example of a body. */
function exampleOf({ place: { source, path }, example }: MediaType): string {
  const [components, kind, name] = path
  if (components !== 'components' || kind !== 'requestBodies' || example === undefined)
    fail(source, path, 'must be a component of requestBodies with an example: the tests send it')
  return `requestExample('${name}')`
}
