/** The commands for other OpenAPI documents than the contract of this service. docs/documents.md
 *  lists what they support. */
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testDocument } from '../../cli/document-contract.ts'
import { startHandlers, startMock } from '../../cli/document-service.ts'
import { diff, keepReleased } from '../../scripts/diff/diff.ts'
import { generate } from '../../scripts/generate/generate.ts'
import { init } from '../../scripts/generate/init.ts'
import { rename } from '../../scripts/rename/rename.ts'
import { openSite } from '../../web/docs/site.ts'
import { readTabs } from '../docs/pages.ts'
import { FAULTY, INCOMPLETE, LIBRARY, MEMBERS, UNSUPPORTED } from './documents.ts'
import { newMuster } from './muster.ts'

const publicDocument = (name: string) =>
  createRequire(import.meta.url).resolve(`@readme/oas-examples/${name}.json`)
const PETSTORE = publicDocument('3.0/json/petstore')
const LOCAL = { host: '127.0.0.1', port: 0 }

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'muster-documents-'))
})
afterAll(() => rm(folder, { recursive: true }))

async function newFolder(name: string, files: Record<string, string>): Promise<string> {
  const directory = join(folder, name)
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, file)), { recursive: true })
    await writeFile(join(directory, file), text)
  }
  return directory
}

/** Runs a service or a mock, and disposes of it at the end of the test. */
async function serve(starting: Promise<Awaited<ReturnType<typeof startHandlers>>>) {
  const { url, stop } = await starting
  return { url, [Symbol.asyncDispose]: () => stop(0) }
}

describe('the Petstore', () => {
  let pets: string
  beforeAll(async () => {
    pets = join(folder, 'pets')
    await init(pets, PETSTORE)
  })

  it('becomes a service: operations respond with 501, and /docs/ describes them', async () => {
    await using service = await serve(startHandlers(pets, LOCAL))
    const get = (path: string, headers = {}) => fetch(service.url + path, { headers })
    expect((await get('/v2/store/inventory')).status).toBe(401)
    expect((await get('/v2/store/inventory', { api_key: 'k' })).status).toBe(501)
    expect((await get('/v2/user/ada')).status).toBe(501)
    expect((await get('/v2/user')).status).toBe(405)
    expect((await get('/v2/cats')).status).toBe(404)
    for (const page of ['', 'resources/pet', 'operations/getPetById', 'schemas']) {
      const response = await get(`/docs/${page}`)
      expect([page, response.status]).toEqual([page, 200])
      expect(await response.text()).not.toContain('Muster')
    }
    expect(await (await get('/docs/operations/getPetById')).text()).toContain('api_key')
  })

  it('starts only with the document that generated/ was written from', async () => {
    const changed = join(folder, 'changed-pets')
    await init(changed, PETSTORE)
    const file = join(changed, 'openapi.json')
    const text = await readFile(file, 'utf8')
    await writeFile(file, text.replace('"title"', '"x-changed": true, "title"'))
    await expect(startHandlers(changed, LOCAL)).rejects.toThrow(
      'generated/ was not written from openapi.json as it is now. Run "npm run generate" first.',
    )
    await using _ = await serve(startHandlers(changed, { ...LOCAL, allowStale: true }))
    await writeFile(file, text.replaceAll('#/components/schemas/Pet"', '#/components/schemas/Dog"'))
    await expect(startHandlers(changed, LOCAL)).rejects.toThrow('#/components/schemas/Dog')
  })

  it('names the setting of a port that is in use', async () => {
    await using service = await serve(startHandlers(pets, LOCAL))
    const { port } = new URL(service.url)
    await expect(startHandlers(pets, { ...LOCAL, port: Number(port) })).rejects.toThrow(
      `Port ${port} of 127.0.0.1 is already in use. Set PORT to another port.`,
    )
  })

  it('has a mock that passes the tests of the document', async () => {
    expect(await testDocument({ root: pets, mock: true })).toMatchObject({
      output: { failed: false, text: '20 operations, 83 requests: the document holds.' },
      results: [],
    })
  })

  it('has no problems for lint', async () => {
    await using muster = await newMuster()
    const { status, stdout } = await muster.run(['lint', '--root', pets])
    expect([status, stdout]).toEqual([0, 'The document has no problems.\n'])
  })

  it('renames an operation in the document, the code and the guides', async () => {
    const root = join(folder, 'renamed-operation')
    await cp(pets, root, { recursive: true })
    await newFolder('renamed-operation', {
      'GUIDE.md': 'Call `getInventory` for the inventory.\n',
      'test/getInventory.test.ts': "import { getInventory } from '../handlers/getInventory.ts'\n",
    })
    const first = await rename('getInventory', 'inventory', { force: true, root })
    expect(first.moved).toEqual([
      { from: 'handlers/getInventory.ts', to: 'handlers/inventory.ts' },
      { from: 'test/getInventory.test.ts', to: 'test/inventory.test.ts' },
    ])
    expect(await readFile(join(root, 'GUIDE.md'), 'utf8')).toBe(
      'Call `inventory` for the inventory.\n',
    )

    const second = await rename('inventory', 'getStock', { force: true, root })
    expect(second.left).toEqual([
      'GUIDE.md:1 can mean the operation inventory: write getStock there',
      'test/getStock.test.ts:1 can mean the operation inventory: write getStock there',
      'Run `npm run lint`, `npx tsc` and `npm test`',
    ])
    expect(await readFile(join(root, 'test/getStock.test.ts'), 'utf8')).toBe(
      "import { inventory } from '../handlers/getStock.ts'\n",
    )
    const handler = await readFile(join(root, 'handlers/getStock.ts'), 'utf8')
    expect(handler).toContain('GET /store/inventory')
    expect(handler).toContain("function getStock(_call: Call<'getStock'>)")
    expect(await readFile(join(root, 'openapi.json'), 'utf8')).toBe(
      (await readFile(join(pets, 'openapi.json'), 'utf8')).replace('getInventory', 'getStock'),
    )
    expect(await generate({ check: true, root })).toMatchObject({ stale: [], orphans: [] })
  })

  it('renames a field in its schema and in the handlers that use it, and lists the rest', async () => {
    const root = join(folder, 'renamed-field')
    await cp(pets, root, { recursive: true })
    await newFolder('renamed-field', {
      'handlers/getPetById.ts': 'export const getPetById = { photoUrls: [], name: 1 }\n',
      'handlers/getInventory.ts': 'export const getInventory = { photoUrls: [] }\n',
    })
    const { left } = await rename('Pet.photoUrls', 'pictures', { force: true, root })
    expect(left).toEqual([
      'handlers/getInventory.ts:1 can mean Pet.photoUrls: write pictures there',
      'Run `npm run lint`, `npx tsc` and `npm test`',
    ])
    expect(await readFile(join(root, 'handlers/getPetById.ts'), 'utf8')).toContain('{ pictures:')
    const { components } = JSON.parse(await readFile(join(root, 'openapi.json'), 'utf8'))
    expect(components.schemas.Pet).toMatchObject({
      required: ['name', 'pictures'],
      properties: { pictures: { type: 'array' } },
    })

    const shared = await rename('Pet.name', 'title', { force: true, root })
    expect(shared.left[0]).toMatch(/^openapi\.json:[\d,]+ can mean Pet\.name: write title there$/)
    expect(shared.left).toContain('handlers/getPetById.ts:1 can mean Pet.name: write title there')
    expect(await generate({ check: true, root })).toMatchObject({ stale: [] })
  })

  it('leaves handlers to a person if the field is a word of TypeScript', async () => {
    const source = await newFolder('keyword', {
      'openapi.yaml': `openapi: 3.0.3
info: { title: People, version: 1.0.0 }
paths:
  /people:
    post:
      operationId: addPerson
      requestBody: { content: { application/json: { schema: { $ref: '#/components/schemas/Person' } } } }
      responses: { '204': { description: Added } }
components:
  schemas:
    Person:
      type: object
      properties:
        function: { type: string }
`,
    })
    const root = join(folder, 'keyword-service')
    await init(root, join(source, 'openapi.yaml'))
    const { left } = await rename('Person.function', 'role', { force: true, root })
    const handler = await readFile(join(root, 'handlers/addPerson.ts'), 'utf8')
    expect(handler).toContain('export async function addPerson(')
    expect(left[0]).toMatch(
      /^handlers\/addPerson\.ts:\d+ can mean Person\.function: write role there$/,
    )
  })

  it.each([
    ['getPet', 'readPet', /^openapi\.json has no operation getPet: did you mean addPet\?/],
    ['getPetById', 'delete', 'delete is not the name of a function: write it like listPets'],
    ['getPetById', 'addPet', 'openapi.json has addPet already: choose another name'],
    ['Pet.nam', 'title', 'Pet has no field nam: did you mean name?'],
    [
      'Pet.colour',
      'color',
      /^Pet has no field colour, or only in a part of allOf: name the schema/,
    ],
    ['Pet.name', 'status', 'Pet has a field status already: choose another name'],
    ['Pet.name', 'full name', /^full name is not a name of a field: use letters/],
  ])('refuses to rename %s to %s', async (name, newName, want) => {
    await expect(rename(name, newName, { force: true, root: pets })).rejects.toThrow(want)
  })

  it('is not copied from a folder, or into a file', async () => {
    const root = join(folder, 'from-folder')
    await expect(init(root, pets)).rejects.toThrow(`There is no file ${pets}.`)
    const file = join(pets, 'openapi.json')
    await expect(init(file, PETSTORE)).rejects.toThrow(
      `${file} exists already, and is no empty folder. Choose a folder that does not exist yet.`,
    )
  })

  it('refuses generate --resource, because the service stores nothing', async () => {
    await using muster = await newMuster()
    const { status, stderr } = await muster.run(['generate', '--root', pets, '--resource', 'pet'])
    expect([status, stderr]).toEqual([
      1,
      'This service is made from an OpenAPI document and stores nothing: write the handlers of pet in handlers/ by hand\n',
    ])
  })

  it('generates the same files again, and names the handler of a removed operation', async () => {
    expect(await generate({ check: true, root: pets })).toMatchObject({ stale: [], orphans: [] })
    const document = JSON.parse(await readFile(PETSTORE, 'utf8'))
    delete document.paths['/store/inventory']
    const changed = await newFolder('changed', { 'openapi.json': JSON.stringify(document) })
    await cp(join(pets, 'handlers'), join(changed, 'handlers'), { recursive: true })
    expect((await generate({ check: false, root: changed })).orphans).toEqual([
      {
        file: 'handlers/getInventory.ts',
        line: null,
        message: 'serves no operation: remove it, or rename it with its operation',
      },
    ])
  })

  it('can be released, so that diff compares with the copy', async () => {
    const document = await readFile(PETSTORE, 'utf8')
    const root = await newFolder('released', { 'openapi.json': document })
    await keepReleased(root)
    await writeFile(join(root, 'openapi.json'), document.replaceAll('getInventory', 'getStock'))
    const { from, changes } = await diff({ root })
    expect(from).toBe(JSON.parse(document).info.version)
    expect(changes).toMatchObject([{ id: 'api-operation-id-removed', level: 'code' }])
  })

  it.each([
    [
      'an empty security requirement',
      { security: [null] },
      'security has an empty entry: name a scheme, or write {} for access without one',
    ],
    [
      'an empty schema',
      { components: { schemas: { Pet: null } } },
      'is no schema: write one, for example {} for any value',
    ],
    [
      'an empty part of allOf',
      { components: { schemas: { Pet: { allOf: [null] } } } },
      'is no schema: write one, for example {} for any value',
    ],
    [
      'schemas that refer only to each other',
      {
        components: {
          schemas: {
            Pet: { $ref: '#/components/schemas/Animal' },
            Animal: { $ref: '#/components/schemas/Pet' },
          },
        },
      },
      '#/components/schemas/Animal refers back to itself: write a schema in place of a reference',
    ],
    [
      'a faulty schema of a header with x-',
      {
        components: {
          headers: { 'x-count': { schema: { type: 'integer', minimum: 'three' } } },
        },
      },
      'minimum must be a number',
    ],
    [
      'an empty security scheme',
      { components: { securitySchemes: { api_key: null } } },
      'api_key is a security scheme that is not supported: use apiKey',
    ],
  ])('is refused with %s', async (name, part, want) => {
    const document = { ...JSON.parse(await readFile(PETSTORE, 'utf8')), ...part }
    const source = await newFolder(name, { 'openapi.json': JSON.stringify(document) })
    const root = join(folder, `service with ${name}`)
    await expect(init(root, join(source, 'openapi.json'))).rejects.toThrow(want)
  })

  it('is compared with a folder, not with a git revision', async () => {
    await expect(diff({ base: 'HEAD', root: pets })).rejects.toThrow(
      'HEAD is no folder: name the folder of the earlier openapi.json. ' +
        'For a git revision, run "git worktree add ../earlier HEAD" before.',
    )
  })

  it('can remove a deprecated operation after its sunset', async () => {
    const document = JSON.parse(await readFile(PETSTORE, 'utf8'))
    const marks = { deprecated: true, 'x-sunset': '2026-03-01' }
    Object.assign(document.paths['/store/inventory'].get, marks)
    const base = await newFolder('base', { 'openapi.json': JSON.stringify(document) })
    delete document.paths['/store/inventory']
    const root = await newFolder('revision', { 'openapi.json': JSON.stringify(document) })
    const { changes } = await diff({ base, root, today: new Date('2026-03-01') })
    expect(changes).toMatchObject([{ id: 'api-path-removed-with-deprecation', level: 'safe' }])
  })
})

describe('public documents', () => {
  it.each([
    ['3.0/json/star-trek', 120],
    ['3.1/json/readme', 54],
    ['3.1/json/train-travel', 7],
    ['3.0/json/uspto', 3],
  ])('%s becomes a service with pages, and a mock that passes the tests', async (name, count) => {
    const root = join(folder, name)
    const { written } = await init(root, publicDocument(name))
    const ids = written.flatMap((file) => /^handlers\/(\w+)\.ts$/.exec(file)?.[1] ?? [])
    expect(ids.length).toBe(count)
    await using service = await serve(startHandlers(root, LOCAL))
    for (const id of ids.slice(0, 3))
      expect([id, (await fetch(`${service.url}/docs/operations/${id}`)).status]).toEqual([id, 200])
    expect((await testDocument({ root, mock: true })).results).toEqual([])
  })
})

describe('a document of OpenAPI 3.1 in two files', () => {
  let library: string
  beforeAll(async () => {
    const source = await newFolder('source', {
      'library.yaml': LIBRARY,
      'parts/members.yaml': MEMBERS,
    })
    library = join(folder, 'library')
    await init(library, join(source, 'library.yaml'))
  })

  it('has a mock that passes the tests of the document', async () => {
    expect((await testDocument({ root: library, mock: true })).output.text).toMatch(
      /^7 operations, \d+ requests: the document holds\.$/,
    )
  })

  it('has pages whose samples and forms send what the document declares', () => {
    const site = openSite({ baseUrl: 'https://library.example', edition: 'server', root: library })
    const page = (id: string) => site.page(`operations/${id}`) ?? ''
    // With -X HEAD, curl would wait for a body.
    expect(readTabs(page('hasShelf'), 'request').curl).toContain('curl --head ')
    expect(page('postNotes')).toContain('data-media-type="text/plain"')
    expect(page('uploadCover')).toContain('data-in="header"')
    expect(page('uploadCover')).not.toContain('data-in="cookie"')
  })

  it('renames an operation, and refuses to rename a field', async () => {
    const root = join(folder, 'renamed-library')
    await cp(library, root, { recursive: true })
    await rename('getShelf', 'readShelf', { force: true, root })
    expect(await readFile(join(root, 'openapi.yaml'), 'utf8')).toContain('operationId: readShelf\n')
    await expect(rename('Novel.kind', 'type', { force: true, root })).rejects.toThrow(
      'The document has several files: rename the field by hand, and generate',
    )
  })

  it('passes validated values to a handler, and the caller that security.ts returns', async () => {
    const root = await withHandlers('handled-library')
    await using service = await serve(startHandlers(root, LOCAL))
    const response = await upload(service, '?size[width]=80&tags=x|y', 'good')
    expect([response.status, await response.json()]).toEqual([
      201,
      {
        path: { shelf: 7, book: 'b-1' },
        query: { size: { width: 80 }, tags: ['x', 'y'] },
        cookies: { theme: 'dark' },
        caller: 'Ada',
        trace: ['a', 'b'],
        title: 'Front',
        bytes: 4,
        pages: 2,
      },
    ])
  })

  it('refuses invalid values, and credentials that security.ts does not know', async () => {
    const root = await withHandlers('guarded-library')
    await using service = await serve(startHandlers(root, LOCAL))
    const challengeOf = ({ status, headers }: Response) => [status, headers.get('www-authenticate')]
    expect(challengeOf(await upload(service, '?size[width]=80', 'bad'))).toEqual([
      401,
      'ApiKey in="cookie", name="session"',
    ])
    expect(challengeOf(await fetch(`${service.url}/api/members`, { method: 'POST' }))).toEqual([
      401,
      'ApiKey in="query", name="key", Basic realm="service"',
    ])
    const invalid = await upload(service, '?size[width]=wide', 'good')
    expect([invalid.status, await invalid.json()]).toEqual([
      422,
      { type: 'about:blank', detail: 'query.size.width must be integer.' },
    ])
  })

  it('does not send a response that breaks the document', async () => {
    const root = await withHandlers('faulty-library')
    await using service = await serve(startHandlers(root, LOCAL))
    expect((await fetch(`${service.url}/api/shelves/7`)).status).toBe(500)
  })

  it('has a mock that returns the response that Prefer selects, if it is declared', async () => {
    await using mock = await serve(startMock(library, LOCAL))
    const get = (path: string, code: number) =>
      fetch(`${mock.url}/api${path}`, { headers: { Prefer: `code=${code}` } })
    expect((await get('/shelves/7', 404)).status).toBe(404)
    expect((await get('/counts', 404)).status).toBe(400)
  })

  /** A copy of the library. One of its handlers returns its arguments, another one an invalid
   *  response. */
  async function withHandlers(name: string): Promise<string> {
    await cp(library, join(folder, name), { recursive: true })
    return newFolder(name, {
      'handlers/uploadCover.ts': `export const uploadCover = async ({ path, query, headers, cookies, body, caller }) => ({
  status: 201,
  body: {
    path, query, cookies, caller,
    trace: headers['x-trace'],
    title: body.title,
    bytes: body.cover.size,
    pages: body.pages.length,
  },
})`,
      'handlers/getShelf.ts':
        "export const getShelf = async () => ({ status: 200, body: { id: 'one' } })",
      'security.ts':
        "export const verify = async ({ session }) => (session === 'good' ? 'Ada' : undefined)",
    })
  }

  function upload({ url }: { url: string }, query: string, session: string): Promise<Response> {
    const body = new FormData()
    body.set('title', 'Front')
    body.set('cover', new Blob(['1234']), 'cover.png')
    for (const page of ['1.png', '2.png']) body.append('pages', new Blob(['x']), page)
    return fetch(`${url}/api/shelves/7/books/b-1/cover${query}`, {
      method: 'PUT',
      body,
      headers: { Cookie: `session=${session}; theme=dark`, 'X-Trace': 'a,b' },
    })
  }
})

/** The lines about the document, without the column and the rule that lint adds. */
function problemLines(output: string): string[] {
  const lines = output.split('\n').filter((line) => line.startsWith('openapi'))
  return lines.map((line) => line.replace(/^([^:]+:\d+)(:\d+ \S+ —)?/, '$1'))
}

describe('a document that is not supported', () => {
  it.each([
    ['constructs', UNSUPPORTED],
    ['values', FAULTY],
  ])('is refused for its %s with every reason, file, line and remedy', async (name, document) => {
    const root = await newFolder(`refused-${name}`, { 'openapi.yaml': document.text })
    await using muster = await newMuster()
    for (const args of [['lint'], ['generate'], ['diff'], ['mock'], ['contract', '--mock']]) {
      const { status, stdout, stderr } = await muster.run([...args, '--root', root])
      expect([args, status]).toEqual([args, 1])
      expect([args, problemLines(stdout + stderr)]).toEqual([args, document.reasons])
    }
  })

  it('can be the base of diff if the revision corrects its values', async () => {
    const text = FAULTY_LIMIT.replace('maximum: 5', 'maximum: 50')
    const base = await newFolder('faulty-base', { 'openapi.yaml': FAULTY_LIMIT })
    const root = await newFolder('corrected-base', { 'openapi.yaml': text })
    expect((await diff({ base, root })).changes).toMatchObject([{ level: 'safe' }])
    await expect(diff({ base: root, root: base })).rejects.toThrow('minimum 10 is above maximum 5')
  })

  it('is refused by init with the name of the file, and leaves no folder behind', async () => {
    const documents = await newFolder('original', {
      'bad.yaml': FAULTY_LIMIT.replace('{ description', "{ $ref: 'parts/none.yaml', description"),
      'worse.yaml': 'openapi: [',
    })
    const root = join(documents, 'new/service')
    const bad = join(documents, 'bad.yaml')
    await expect(init(root, bad)).rejects.toThrow(`${bad}:7 minimum 10 is above maximum 5`)
    await expect(init(root, bad)).rejects.toThrow(`${bad}:8 refers to parts/none.yaml`)
    const worse = join(documents, 'worse.yaml')
    await expect(init(root, worse)).rejects.toThrow(`${worse}:1 is not YAML`)
    expect(await readdir(documents)).toEqual(['bad.yaml', 'worse.yaml'])
  })

  it('is refused by init with the name of the part that has the problem', async () => {
    const documents = await newFolder('parts-of-original', {
      'library.yaml': LIBRARY,
      'parts/members.yaml': MEMBERS.replace('minLength: 1', 'minLength: one'),
    })
    const problem = `${join(documents, 'parts/members.yaml')}:6 minLength must be a whole number`
    const library = join(documents, 'library.yaml')
    await expect(init(join(documents, 'service'), library)).rejects.toThrow(problem)
  })

  it('leaves the folder of init usable for a corrected document', async () => {
    const documents = await newFolder('corrected', { 'bad.yaml': UNSUPPORTED.text })
    const root = join(documents, 'service')
    await mkdir(root)
    await expect(init(root, join(documents, 'bad.yaml'))).rejects.toThrow('is not supported')
    expect(await readdir(root)).toEqual([])
    const { written } = await init(root, PETSTORE)
    expect(written.length).toBeGreaterThan(0)
  })
})

const FAULTY_LIMIT = `openapi: 3.0.3
info: { title: Limits, version: '1' }
paths:
  /a:
    get:
      parameters:
        - { name: limit, in: query, schema: { type: integer, minimum: 10, maximum: 5 } }
      responses: { '204': { description: Nothing. } }
`

describe('a document that lacks a description or a version', () => {
  it('fails lint. The other commands name the parts and succeed', async () => {
    const root = await newFolder('incomplete', { 'openapi.yaml': INCOMPLETE })
    await using muster = await newMuster()
    const want = [
      'openapi.yaml:2 info has no version, which OpenAPI requires: add it',
      'openapi.yaml:8 response 204 has no description, which OpenAPI requires: add it',
      'openapi.yaml:12 response Missing has no description, which OpenAPI requires: add it',
    ]
    const lint = await muster.run(['lint', '--root', root])
    expect([lint.status, problemLines(lint.stdout)]).toEqual([1, want])
    for (const args of [['generate'], ['generate', '--check'], ['diff']]) {
      const { status, stdout } = await muster.run([...args, '--root', root])
      expect([args, status, problemLines(stdout)]).toEqual([args, 0, want])
    }
    const { results } = JSON.parse((await muster.run(['diff', '--root', root, '--json'])).stdout)
    expect(results).toMatchObject(Array(want.length).fill({ level: 'warning' }))
  })
})

describe('muster contract --root', () => {
  it('records the requests of failures, without the key', async () => {
    const root = join(folder, 'recorded')
    await init(root, PETSTORE)
    await using muster = await newMuster()
    const har = join(folder, 'failures.har')
    const options = ['--root', root, '--key', 'mst/key', '--har', har, '--json']
    const { status, stdout } = await muster.run(['contract', ...options])
    const { operations } = JSON.parse(stdout) as { operations: { failures: string[] }[] }
    const failures = operations.flatMap((operation) => operation.failures)
    const recording = await readFile(har, 'utf8')
    const { entries } = JSON.parse(recording).log
    expect([status, entries.length]).toEqual([1, failures.length])
    expect(entries).toContainEqual(
      expect.objectContaining({
        comment: expect.stringContaining('getInventory a valid request: responds with 501'),
        request: expect.objectContaining({
          url: expect.stringMatching(/\/v2\/store\/inventory$/),
          headers: [{ name: 'api_key', value: '$KEY' }],
        }),
        response: expect.objectContaining({ status: 501 }),
      }),
    )
    expect(recording).not.toContain('mst/key')
  })

  it('reports one failure if nothing responds at the URL', async () => {
    await using muster = await newMuster()
    const root = await newFolder('unanswered', { 'openapi.json': await readFile(PETSTORE, 'utf8') })
    const url = 'http://127.0.0.1:9'
    const { stdout, status } = await muster.run([
      ...['contract', '--root', root, '--url', url, '--json'],
    ])
    expect(status).toBe(1)
    expect(JSON.parse(stdout).results).toEqual([
      expect.objectContaining({ message: expect.stringMatching(`^Nothing responds at ${url}: `) }),
    ])
  })

  it('says with --allow-stale, too, that the document was never generated', async () => {
    const root = await newFolder('not-generated', {
      'openapi.json': await readFile(PETSTORE, 'utf8'),
    })
    await using muster = await newMuster()
    const { stderr } = await muster.run(['contract', '--root', root, '--allow-stale'])
    expect(stderr).toBe('generated/openapi.json does not exist. Run "npm run generate" first.\n')
  })

  it('starts a service whose document was changed only with --allow-stale', async () => {
    const root = join(folder, 'stale')
    await init(root, PETSTORE)
    const file = join(root, 'openapi.json')
    await writeFile(file, (await readFile(file, 'utf8')).replace('Petstore', 'Pets'))
    await using muster = await newMuster()
    for (const args of [['contract'], ['docs', '--out', join(folder, 'stale-site')]]) {
      const refused = await muster.run([...args, '--root', root])
      expect([args, refused.stderr]).toEqual([
        args,
        'generated/ was not written from openapi.json as it is now. Run "npm run generate" first.\n',
      ])
      const { stderr } = await muster.run([...args, '--root', root, '--allow-stale'])
      expect([args, stderr]).toEqual([args, ''])
    }
  })

  it.each([[['--runs', '3']], [['--seed', '7']], [['--only', 'createTask']], [['--prove']]])(
    'refuses %j, which only tests of an installation have',
    async (options) => {
      const root = await newFolder('options', { 'openapi.yaml': LIBRARY })
      await using muster = await newMuster()
      const [option = ''] = options
      expect(await muster.run(['contract', '--root', root, ...options])).toMatchObject({
        status: 2,
        stderr: expect.stringContaining(`'--root <folder>' cannot be used with option '${option}`),
      })
    },
  )
})
