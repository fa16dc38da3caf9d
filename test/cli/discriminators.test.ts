/** `discriminator` in another OpenAPI document: it chooses the alternative of a value in a mock and
 *  in a service. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHandlers, startMock } from '../../cli/document-service.ts'
import { init } from '../../scripts/generate/init.ts'
import { newRecordHandler } from '../../scripts/mock/document.ts'

const REF = '#/components/schemas'

const PETS = ({ version = '3.0.3', pet = '', cat = '', dog = '', base = '{}' }) => `
openapi: ${version}
info: { title: Pets, version: '1' }
paths:
  /pets:
    post:
      operationId: createPet
      requestBody: &pet
        required: true
        content: { application/json: { schema: { $ref: '${REF}/Pet' } } }
      responses: &stored
        '200':
          description: The pet
          content: { application/json: { schema: { $ref: '${REF}/Stored' } } }
        '422': { description: The request is wrong }
  /pets/{id}:
    parameters: [{ name: id, in: path, required: true, schema: { type: string } }]
    get: { operationId: getPet, responses: *stored }
    put: { operationId: replacePet, requestBody: *pet, responses: *stored }
  /visits:
    post:
      operationId: createVisit
      requestBody:
        required: true
        content: { application/json: { schema: { $ref: '${REF}/Visit' } } }
      responses: { '204': { description: Created } }
components:
  schemas:
    Visit:
      type: object
      required: [pets]
      properties: { pets: { type: array, items: { $ref: '${REF}/Pet' } } }
    Stored:
      allOf:
        - { type: object, required: [id], properties: { id: { type: string, format: uuid } } }
        - { $ref: '${REF}/Pet' }
    Pet: ${pet}
    Cat: ${cat}
    Dog: ${dog}
    Base: ${base}
`
const EITHER = `oneOf: [{ $ref: '${REF}/Cat' }, { $ref: '${REF}/Dog' }]`
const LIVES = 'lives: { type: integer }, mood: { type: string, default: calm }'
const TRICKS =
  'tricks: { type: array, items: { type: string } }, size: { type: string, default: big }'
const ofKind = (kind: string, required: string, more: string) =>
  `{ type: object, required: [kind, ${required}], properties: { kind: ${kind}, ${more} } }`
const ofBase = (required: string, more: string) =>
  `{ allOf: [{ $ref: '${REF}/Base' }, { type: object, required: [${required}], properties: { ${more} } }] }`

/** `what`: by which the discriminator chooses an alternative. `kinds`: the values of the property
 *  `kind` of a cat and of a dog. */
const DOCUMENTS = [
  {
    what: 'a mapping',
    kinds: ['cat', 'dog'],
    text: PETS({
      pet: `{ ${EITHER}, discriminator: { propertyName: kind, mapping: { cat: Cat, dog: '${REF}/Dog' } } }`,
      cat: ofKind('{ type: string }', 'lives', LIVES),
      dog: ofKind('{ type: string }', 'tricks', TRICKS),
    }),
  },
  {
    what: 'the names of the alternatives',
    kinds: ['Cat', 'Dog'],
    text: PETS({
      pet: `{ ${EITHER}, discriminator: { propertyName: kind } }`,
      cat: ofBase('lives', LIVES),
      dog: ofBase('tricks', TRICKS),
      base: '{ type: object, required: [kind], properties: { kind: { type: string, enum: [Cat, Dog] } } }',
    }),
  },
  {
    what: 'constants, in anyOf of OpenAPI 3.1',
    kinds: ['meow', 'woof'],
    text: PETS({
      version: '3.1.0',
      pet: `{ ${EITHER.replace('oneOf', 'anyOf')}, discriminator: { propertyName: kind } }`,
      cat: ofKind('{ const: meow }', 'lives', LIVES),
      dog: ofKind('{ const: woof }', 'tricks', TRICKS),
    }),
  },
]

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'muster-discriminators-'))
})
afterAll(() => rm(folder, { recursive: true }))

async function newRoot(name: string, text: string): Promise<string> {
  const root = join(folder, name)
  await mkdir(root, { recursive: true })
  await writeFile(join(root, 'openapi.yaml'), text)
  return root
}

const LOCAL = { host: '127.0.0.1', port: 0 }

async function send(url: string, method: string, body?: object) {
  const headers = { 'Content-Type': 'application/json' }
  const response = await fetch(url, { method, headers, body: body && JSON.stringify(body) })
  const text = await response.text()
  return { status: response.status, body: text && JSON.parse(text) }
}

describe.each(DOCUMENTS)('a discriminator with $what', ({ what, kinds: [cat, dog], text }) => {
  it('chooses the alternative of a record that a request creates or replaces', async () => {
    const root = await newRoot(`records of ${what}`, text)
    const { url, stop } = await startMock(root, LOCAL, newRecordHandler)
    await using _mock = { [Symbol.asyncDispose]: () => stop(0) }
    const { body: created } = await send(`${url}/pets`, 'POST', { kind: dog, tricks: ['sit'] })
    expect(created).toEqual({ id: created.id, kind: dog, tricks: ['sit'], size: 'big' })
    const pet = `${url}/pets/${created.id}`
    expect((await send(pet, 'GET')).body).toEqual(created)
    const replaced = { id: created.id, kind: cat, lives: 9, mood: 'calm' }
    expect((await send(pet, 'PUT', { kind: cat, lives: 9 })).body).toEqual(replaced)
    expect((await send(pet, 'GET')).body).toEqual(replaced)
  })

  it('reports only the errors of the chosen alternative, in a mock and in a service', async () => {
    const document = await newRoot(`document of ${what}`, text)
    const root = join(folder, `service of ${what}`)
    await init(root, join(document, 'openapi.yaml'))
    for (const starting of [startMock(root, LOCAL), startHandlers(root, LOCAL)]) {
      const { url, stop } = await starting
      await using _service = { [Symbol.asyncDispose]: () => stop(0) }
      const errorsOf = async (body: object, path = '/pets') =>
        (await send(url + path, 'POST', body)).body.errors
      expect(await errorsOf({ kind: dog, tricks: 1 })).toEqual({
        'body.tricks': ['body.tricks must be array.'],
      })
      const unknown = { 'body.kind': [`body.kind must be one of ${cat}, ${dog}.`] }
      expect(await errorsOf({ kind: 'cow', tricks: 1 })).toEqual(unknown)
      expect(await errorsOf({})).toEqual({ 'body.kind': ['body.kind is required.'] })
      expect(await errorsOf([])).toEqual({ body: ['body must be object.'] })
      expect(await errorsOf({ pets: [{ kind: cat, lives: 'x' }] }, '/visits')).toEqual({
        'body.pets.0.lives': ['body.pets.0.lives must be integer.'],
      })
    }
  })
})

it('accepts null beside a discriminator', async () => {
  const nullable = `{ ${EITHER}, nullable: true, discriminator: { propertyName: kind } }`
  const cat = ofKind('{ type: string }', 'lives', LIVES)
  const dog = ofKind('{ type: string }', 'tricks', TRICKS)
  const root = await newRoot('nullable', PETS({ pet: nullable, cat, dog }))
  const { url, stop } = await startMock(root, LOCAL)
  await using _mock = { [Symbol.asyncDispose]: () => stop(0) }
  expect((await send(`${url}/visits`, 'POST', { pets: [null] })).status).toBe(204)
  expect((await send(`${url}/visits`, 'POST', { pets: [{ kind: 'Cat' }] })).body.errors).toEqual({
    'body.pets.0.lives': ['body.pets.0.lives is required.'],
  })
})

it('does not choose by an integer of a form, whose fields are text: oneOf decides', async () => {
  const root = await newRoot(
    'form',
    `openapi: 3.1.0
info: { title: Forms, version: 1.0.0 }
paths:
  /forms:
    post:
      operationId: sendForm
      requestBody:
        content:
          application/x-www-form-urlencoded:
            schema:
              oneOf: [{ $ref: '#/components/schemas/One' }, { $ref: '#/components/schemas/Two' }]
              discriminator: { propertyName: n }
      responses: { '204': { description: Done } }
components:
  schemas:
    One: { type: object, required: [n], properties: { n: { type: integer, enum: [1] } } }
    Two: { type: object, required: [n, b], properties: { n: { type: integer, enum: [2] }, b: { type: string } } }
`,
  )
  const { url, stop } = await startMock(root, LOCAL)
  await using _mock = { [Symbol.asyncDispose]: () => stop(0) }
  const statusOf = async (form: Record<string, string>): Promise<number> =>
    (await fetch(`${url}/forms`, { method: 'POST', body: new URLSearchParams(form) })).status
  expect(await statusOf({ n: '1' })).toBe(204)
  expect(await statusOf({ n: '2', b: 'x' })).toBe(204)
  expect(await statusOf({ n: '2' })).toBe(400)
})
