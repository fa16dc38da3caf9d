/** The commands for a document of OpenAPI 3.1 in two files. */
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { testDocument } from '../../cli/document-contract.ts'
import { startHandlers, startMock } from '../../cli/document-service.ts'
import { init } from '../../scripts/generate/init.ts'
import { openSite } from '../../web/docs/site.ts'
import { readTabs } from '../docs/pages.ts'
import { folder, LOCAL, newFolder, serve } from './document-folder.ts'
import { LIBRARY, MEMBERS } from './documents.ts'

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
      /^7 operations, \d+ requests: all responses match the document\.$/,
    )
  })

  it('has pages whose samples and forms send what the document declares', () => {
    const site = openSite({ baseUrl: 'https://library.example', edition: 'server', root: library })
    const page = (id: string) => site.page(`operations/${id}`) ?? ''
    // With -X HEAD, curl would wait for a body.
    expect(readTabs(page('hasShelf'), 'request').curl).toContain('curl --head ')
    expect(page('postNotes')).toContain('data-media-type="text/plain"')
    expect(page('getShelf')).toMatch(/<code[^>]*>detail<.*<code[^>]*>trace_id</s)
    expect(page('uploadCover')).toContain('data-in="header"')
    expect(page('uploadCover')).not.toContain('data-in="cookie"')
  })

  it.each(['pages', 'pages[]'])(
    'passes validated values to a handler, with the caller that security.ts returns and the files named %s',
    async (pagesName) => {
      const root = await withHandlers('handled-library')
      await using service = await serve(startHandlers(root, LOCAL))
      const response = await upload(service, '?size[width]=80&tags=x|y', 'good', pagesName)
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
    },
  )

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
      { type: 'about:blank', detail: 'query.size.width must be integer.', trace_id: 'text' },
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

  function upload(
    { url }: { url: string },
    query: string,
    session: string,
    pagesName = 'pages',
  ): Promise<Response> {
    const body = new FormData()
    body.set('title', 'Front')
    body.set('cover', new Blob(['1234']), 'cover.png')
    for (const page of ['1.png', '2.png']) body.append(pagesName, new Blob(['x']), page)
    return fetch(`${url}/api/shelves/7/books/b-1/cover${query}`, {
      method: 'PUT',
      body,
      headers: { Cookie: `session=${session}; theme=dark`, 'X-Trace': 'a,b' },
    })
  }
})
