/** The source text of the test of a resource's operations. The test uses the examples of the
 *  contract. */
import type { MediaType, Operation } from '../../model/operations.ts'
import { fail } from '../../model/source.ts'
import { literal } from '../typescript-text.ts'
import { renderNewId } from './fixture.ts'
import { eventOf } from './handlers.ts'
import type { Reference } from './references.ts'
import type { Resource } from './resource.ts'

export function renderTest(resource: Resource): string {
  const { update } = resource
  const checks = update ? 'expectRead, expectUpdate' : 'expectRead'
  const references = testedReferences(resource)
  const fromNewRecords = [
    ...(references.length > 0 ? ['errorOf'] : []),
    'eventsAbout',
    ...(update || references.length === 0 ? ['requestExample'] : []),
    ...(references.length > 0 ? ['UNKNOWN_ID'] : []),
  ]
  const tests = [
    renderCreateTest(resource),
    ...references.map((field) => renderReferenceTests(resource, field)),
    renderUpdateTest(resource),
    renderDeleteTest(resource),
  ]
  return `import { beforeAll, expect, test } from 'vitest'
import { type Client, sharedApp } from '../helpers.ts'
import { ${references.length > 0 ? 'newBody, newRecord' : 'newRecord'} } from '../resources.ts'
import { ${checks} } from './checks.ts'
import { ${fromNewRecords.join(', ')} } from './new-records.ts'

let client: Client

const app = sharedApp()
beforeAll(async () => {
  client = app.as(await app.newAccount())
})
${tests.join('')}`
}

/** The references that a create request can have. */
function testedReferences({ fields }: Resource): TestedReference[] {
  return fields.flatMap(({ name, reference, creation }) =>
    reference && creation ? [{ name, reference }] : [],
  )
}

interface TestedReference {
  name: string
  reference: Reference
}

function renderCreateTest(resource: Resource): string {
  const { create, get, slug, fields, type } = resource
  const initial = fields
    .filter(({ creation, initial }) => creation === undefined && initial !== undefined)
    .map(({ name, initial }) => [name, initial])
  const expected = `{ ...example, ${literal(Object.fromEntries(initial)).slice(1, -1)} }`
  const example = exampleOf(create.body)
  const body = testedReferences(resource).length > 0 ? `await newBody(client, '${type}')` : example
  return `
test('${create.id}, ${get.id}: the example of the contract → 201, and a GET returns the same', async () => {
  const example = ${body}
  const answer = await client.post('/${slug}', example)
  expect(answer).toMatchObject({ status: 201, body: ${initial.length === 0 ? 'example' : expected} })
  await expectRead(client, \`/${slug}/\${answer.body.id}\`, answer)
  expect(await eventsAbout(client, answer.body.id)).toEqual(${events(create)})
})
`
}

function renderReferenceTests(
  { create, type, slug }: Resource,
  { name, reference }: TestedReference,
): string {
  const deletion = `
test('${reference.deletion?.id}: ${slug} refer to the ${reference.noun} → 422', async () => {
  const { id } = await newRecord(client, '${reference.type}')
  await newRecord(client, '${type}', { ${name}: id })
  const error = errorOf(client.delete(\`/${reference.slug}/\${id}\`))
  expect(await error).toEqual({ status: 422, fields: ['${reference.type}'] })
})
`
  return `
test('${create.id}: the ${reference.noun} of another account, or an unknown one → 422', async () => {
  const other = app.as(await app.newAccount())
  for (const ${name} of [(await newRecord(other, '${reference.type}')).id, UNKNOWN_ID]) {
    const body = { ...(await newBody(client, '${type}')), ${name} }
    const error = errorOf(client.post('/${slug}', body))
    expect(await error).toEqual({ status: 422, fields: ['${name}'] })
  }
})
${reference.deletion ? deletion : ''}`
}

function renderUpdateTest(resource: Resource): string {
  const { create, update, slug, type } = resource
  if (!update) return ''
  return `
test('${update.id}: the example of the contract changes only its fields, with one event', async () => {
  const { id } = await newRecord(client, '${type}')
  await expectUpdate(client, \`/${slug}/\${id}\`, ${renderUpdateBody(update.body, resource)})
  expect((await client.patch(\`/${slug}/\${id}\`, {})).status).toBe(200)
  expect(await eventsAbout(client, id)).toEqual(${events(create, update)})
})
`
}

/** The code of the update's body: the example of the contract, but its references are the IDs of
 *  new records. */
function renderUpdateBody(body: MediaType, { fields }: Resource): string {
  const example = exampleOf(body)
  const ids = Object.keys(body.example as object)
    .map((name) => renderNewId(fields, body, name))
    .filter((line) => line !== undefined)
  return ids.length === 0 ? example : `{ ...${example}, ${ids.join(', ')} }`
}

function renderDeleteTest({ create, delete: deletion, slug, type }: Resource): string {
  if (!deletion) return ''
  return `
test('${deletion.id}: the record is no longer there', async () => {
  const { id } = await newRecord(client, '${type}')
  expect((await client.delete(\`/${slug}/\${id}\`)).status).toBe(204)
  expect((await client.get(\`/${slug}/\${id}\`)).status).toBe(404)
  expect(await eventsAbout(client, id)).toEqual(${events(create, deletion)})
})
`
}

const events = (...operations: Operation[]): string =>
  literal(operations.map(eventOf).filter((type) => type !== ''))

/** The code that reads the example of a body. */
function exampleOf({ place: { source, path }, example }: MediaType): string {
  const [components, kind, name] = path
  if (components !== 'components' || kind !== 'requestBodies' || example === undefined)
    fail(source, path, 'must be a component of requestBodies with an example: the tests send it')
  return `requestExample('${name}')`
}
