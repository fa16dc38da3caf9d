/** The commands for other OpenAPI documents than the contract of this service. docs/documents.md
 *  lists what they support. */
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { testDocument } from '../../cli/document-contract.ts'
import { startHandlers } from '../../cli/document-service.ts'
import { diff, keepReleased } from '../../scripts/diff/diff.ts'
import { generate } from '../../scripts/generate/generate.ts'
import { init } from '../../scripts/generate/init.ts'
import { openSite } from '../../web/docs/site.ts'
import { readTabs } from '../docs/pages.ts'
import { folder, LOCAL, newFolder, PETSTORE, publicDocument, serve } from './document-folder.ts'
import { newMuster } from './muster.ts'

const GET_WITH_BODY = `openapi: 3.0.3
info: { title: Search, version: '1' }
paths:
  /search:
    get:
      operationId: search
      requestBody:
        content:
          application/json: { schema: { type: object }, example: { text: lamp } }
      responses: { '200': { description: The results. } }
`

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
      output: {
        failed: false,
        text: '20 operations, 83 requests: all responses match the document.',
      },
      results: [],
    })
  })

  it('is tested at a URL or as a mock, not both', async () => {
    await using muster = await newMuster()
    const target = ['--mock', '--url', 'http://127.0.0.1:1']
    const { status, stderr } = await muster.run(['contract', '--root', pets, ...target])
    expect([status, stderr]).toEqual([2, expect.stringMatching(/'--mock' starts a mock: do not/)])
  })

  it('has no problems for lint', async () => {
    await using muster = await newMuster()
    const { status, stdout } = await muster.run(['lint', '--root', pets])
    expect([status, stdout]).toEqual([0, 'The document has no problems.\n'])
  })

  it('is refused by init if it is a folder, or if the new folder is a file', async () => {
    const root = join(folder, 'from-folder')
    await expect(init(root, pets)).rejects.toThrow(
      `There is no file ${pets}. Name a file with an OpenAPI document.`,
    )
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

  it('is compared with a folder, not with a git revision', async () => {
    await expect(diff({ base: 'HEAD', root: pets })).rejects.toThrow(
      'HEAD is no folder: name the folder of the earlier openapi.json. ' +
        'For a git revision, first run "git worktree add ../earlier HEAD".',
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

it('shows an operation that is a GET with a body as a curl command that sends a GET', async () => {
  const source = await newFolder('search', { 'openapi.yaml': GET_WITH_BODY })
  const root = join(folder, 'search-service')
  await init(root, join(source, 'openapi.yaml'))
  const site = openSite({ baseUrl: 'https://search.example', edition: 'server', root })
  const { curl } = readTabs(site.page('operations/search') ?? '', 'request')
  expect(curl).toContain('--data-raw')
  // With a body, the default method of curl is POST.
  expect(curl).toContain("curl -X GET 'https://search.example/search'")
})
