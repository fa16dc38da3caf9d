import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, normalize, relative } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { parse } from 'yaml'
import { eventTypes } from '../../generated/events.ts'
import contract from '../../generated/openapi.json' with { type: 'json' }
import { operations } from '../../generated/operations.ts'
import { newMuster } from '../cli/muster.ts'
import { operationIds, startApp, type TestApp } from '../helpers.ts'
import { listIds, listTargets } from './pages.ts'

const MAX_FIRST_LOAD_BYTES = 1.5 * 1024 * 1024

interface Fetched {
  response: Response
  text: string
}

// biome-ignore lint/suspicious/noExplicitAny: other tests check the contracts.
type Json = any

let app: TestApp
/** Everything that links reach from the home page, by URL without fragment. */
const site = new Map<string, Fetched>()

beforeAll(async () => {
  app = await startApp()
  const queue = [`${app.url}/docs/`]
  for (let url = queue.pop(); url !== undefined; url = queue.pop()) {
    if (site.has(url)) continue
    const response = await fetch(url)
    const fetched = { response, text: await response.text() }
    site.set(url, fetched)
    if (isPage(url, fetched))
      queue.push(...linksFrom(url, fetched.text).filter((link) => link.startsWith(app.url)))
  }
}, 120_000)
afterAll(async () => app[Symbol.asyncDispose]())

/** A page of the documentation, which also links to the console. */
function isPage(url: string, { response }: Fetched): boolean {
  return (
    url.startsWith(`${app.url}/docs/`) &&
    response.headers.get('content-type') === 'text/html; charset=utf-8'
  )
}

/** The URLs that a page links to or loads, without fragments. */
function linksFrom(url: string, text: string): string[] {
  return listTargets(text).map(({ target }) => new URL(target, url).href.replace(/#.*$/, ''))
}

/** The URLs that a section of a page links to. `id`: of its heading. */
function linksFromSection(url: string, id: string): string[] {
  const text = site.get(url)?.text ?? ''
  const [section = ''] = new RegExp(`<h2 id="${id}">.*?</section>`, 's').exec(text) ?? []
  return linksFrom(url, section)
}

const pages = () =>
  [...site]
    .filter(([url, fetched]) => isPage(url, fetched))
    .map(([url, { response, text }]) => ({ url, response, text }))
const pageAt = (path: string) => site.get(`${app.url}/docs/${path}`)

describe('the documentation', () => {
  it('GET /docs: redirects to the home page', async () => {
    const response = await fetch(`${app.url}/docs`, { redirect: 'manual' })
    expect(response.status).toBe(308)
    expect(response.headers.get('location')).toBe('/docs/')
    expect(pageAt('')?.text).toContain('<h1>Muster API</h1>')
  })

  it('has a page for each operation and each event', () => {
    for (const id of operationIds)
      expect(pageAt(`operations/${id}`)?.text, id).toContain(operations[id].method.toUpperCase())
    for (const type of [...Object.keys(eventTypes), 'webhook.test'])
      expect(pageAt(`events/${type}`)?.text, type).toContain(`<h1>${type}</h1>`)
  })

  it('has no link to a missing page or fragment', () => {
    expect(pages().length).toBeGreaterThan(operationIds.length + Object.keys(eventTypes).length)
    const broken = pages().flatMap(({ url, text }) =>
      listTargets(text)
        .map(({ target }) => new URL(target, url).href)
        .filter((link) => link.startsWith(app.url))
        .filter((link) => {
          const [target = '', fragment] = link.split('#')
          const found = site.get(target)
          if (found?.response.status !== 200) return true
          if (fragment === undefined) return false
          return !listIds(found.text).includes(decodeURIComponent(fragment))
        })
        .map((link) => `${url} -> ${link}`),
    )
    expect(broken).toEqual([])
  })

  it('uses each element ID once per page', () => {
    for (const { url, text } of pages()) {
      const ids = listIds(text)
      expect(ids.length, url).toBe(new Set(ids).size)
    }
  })

  it('links operations to the events that they emit, and events to the operations that trigger them', async () => {
    const { paths, 'x-emitted-by-system': bySystem } = parse(
      (await app.call('GET', '/openapi.yaml')).text,
    )
    const emitted = Object.values<Record<string, { operationId?: string; 'x-emits'?: string[] }>>(
      paths,
    )
      .flatMap((item) => Object.values(item))
      .flatMap((operation) =>
        (operation['x-emits'] ?? []).map((type) => ({ id: operation.operationId, type })),
      )
    expect(emitted.length).toBeGreaterThan(10)
    for (const { id, type } of emitted) {
      const operation = `${app.url}/docs/operations/${id}`
      const event = `${app.url}/docs/events/${type}`
      expect(linksFromSection(operation, 'emits'), `${id} emits`).toContain(event)
      expect(linksFromSection(event, 'triggers'), `${type} is triggered by`).toContain(operation)
    }
    for (const type of bySystem)
      expect(pageAt(`events/${type}`)?.text).toContain('The system itself')
  })

  it('links each event to its resource, and to the operation that returns its record', () => {
    for (const type of Object.keys(eventTypes)) {
      const event = `${app.url}/docs/events/${type}`
      const [get = ''] = linksFromSection(event, 'record')
      expect(get, type).toMatch(/\/operations\/get\w+$/)
      const [crumbs = ''] = /<p class="crumbs">.*?<\/p>/s.exec(site.get(event)?.text ?? '') ?? []
      const resource = linksFrom(event, crumbs).at(-1) ?? ''
      expect(linksFromSection(resource, 'events'), type).toContain(event)
      expect(linksFromSection(resource, 'operations'), type).toContain(get)
    }
  })

  it('shows every parameter, every field of a body and every status of each operation', async () => {
    const { paths, components } = (await app.call('GET', '/openapi.json')).body
    const resolve = (node: Json): Json => {
      if (node.$ref === undefined) return node
      const [, , kind, name] = node.$ref.split('/')
      return components[kind][name]
    }
    const listFields = ({ requestBody }: Json): string[] => {
      if (requestBody === undefined) return []
      const { schema } = resolve(requestBody).content['application/json'] ?? {}
      return schema === undefined ? [] : Object.keys(resolve(schema).properties)
    }
    for (const item of Object.values<Json>(paths))
      for (const operation of Object.values<Json>(item)) {
        const { operationId, parameters = [], responses } = operation
        if (operationId === undefined) continue
        const page = pageAt(`operations/${operationId}`)?.text
        const names = [...(item.parameters ?? []), ...parameters].map(
          (parameter) => resolve(parameter).name,
        )
        for (const name of [...names, ...listFields(operation)])
          expect(page, operationId).toContain(`<code class="field-name">${name}</code>`)
        for (const status of Object.keys(responses))
          expect(page, operationId).toContain(`id="response-${status}"`)
      }
  })

  it('describes each value of an enumeration with descriptions', () => {
    const { enum: values, 'x-enum-descriptions': texts } =
      contract.components.schemas.NumberOperator
    const items = values.map(
      (value, index) => `<li><code>${value}</code>: <p>${texts[index]}</p>\n</li>`,
    )
    expect(texts).toHaveLength(values.length)
    expect(pageAt('operations/createJob')?.text).toContain(items.join(''))
  })

  it('has a strict Content-Security-Policy, and no page breaks it', () => {
    for (const { url, response, text } of pages()) {
      const policy = response.headers.get('content-security-policy') ?? ''
      expect(policy, url).toContain("default-src 'none'")
      expect(policy, url).toContain("frame-ancestors 'none'")
      expect(policy, url).not.toMatch(/unsafe|https?:|\*/)
      expect(
        text.match(/<script(?![^>]* src=)[^>]*>|<style|\sstyle=|\son\w+=|javascript:/g),
        url,
      ).toBeNull()
      const loaded = [...text.matchAll(/<(?:script|link|img)[^>]* (?:src|href)="([^"]*)"/g)].map(
        ([, target]) => target,
      )
      expect(loaded.length, url).toBeGreaterThan(4)
      for (const target of loaded) expect(new URL(target ?? '', url).origin, url).toBe(app.url)
    }
  })

  it('each page links to its Markdown, and llms.txt lists it', () => {
    const list = pageAt('llms.txt')
    expect(list?.response.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    for (const { url, text } of pages()) {
      const alternate = /<link rel="alternate" href="([^"]*)" type="text\/markdown">/.exec(
        text,
      )?.[1]
      const path = new URL(alternate ?? '', url).href.replace(`${app.url}/docs/`, '')
      expect(pageAt(path)?.response.headers.get('content-type'), url).toBe(
        'text/markdown; charset=utf-8',
      )
      if (!/^(index|resources\/.*)\.md$/.test(path)) expect(list?.text).toContain(`](${path})`)
    }
  })

  it('has style rules for each language of its samples, and for pages without that language', () => {
    const [, css] = [...site].find(([url]) => url.endsWith('/docs.css')) ?? []
    const languages = pages().flatMap(({ text }) =>
      [...text.matchAll(/data-language="(\w+)"/g)].map(([, language]) => language),
    )
    expect(new Set(languages).size).toBeGreaterThan(6)
    for (const language of new Set(languages))
      for (const panel of [
        `.tab-panel[data-language="${language}"]`,
        `.tabs:not(:has([data-language="${language}"])) .tab-panel:nth-child(2)`,
      ])
        expect(css?.text.replace(/\s+/g, ' ')).toContain(
          `.js[data-language="${language}"] ${panel}`,
        )
  })

  it('loads at most 1.5 MiB for a page', () => {
    for (const { url, text } of pages()) {
      const assets = new Set(linksFrom(url, text).filter((link) => link.includes('/docs/assets/')))
      let bytes = Buffer.byteLength(text)
      for (const link of assets) bytes += Buffer.byteLength(site.get(link)?.text ?? '')
      expect(bytes, url).toBeLessThan(MAX_FIRST_LOAD_BYTES)
    }
  })

  it('browsers cache assets forever and revalidate pages', async () => {
    const page = `${app.url}/docs/operations/listTasks`
    const etag = site.get(page)?.response.headers.get('etag') ?? ''
    expect(site.get(page)?.response.headers.get('cache-control')).toBe('no-cache')
    const again = await fetch(page, { headers: { 'If-None-Match': etag } })
    expect(again.status).toBe(304)
    expect(await again.text()).toBe('')
    for (const [url, { response }] of site)
      if (url.includes('/docs/assets/'))
        expect(response.headers.get('cache-control'), url).toBe(
          'public, max-age=31536000, immutable',
        )
  })

  it('compresses for clients that accept gzip, with a different ETag', async () => {
    const url = `${app.url}/docs/operations/listTasks`
    const plain = await fetch(url, { headers: { 'Accept-Encoding': 'identity' } })
    const zipped = await fetch(url, { headers: { 'Accept-Encoding': 'gzip' } })
    expect(plain.headers.get('content-encoding')).toBeNull()
    expect(zipped.headers.get('content-encoding')).toBe('gzip')
    const text = await plain.text()
    expect(await zipped.text()).toBe(text)
    expect(Number(zipped.headers.get('content-length'))).toBeLessThan(gzipSync(text).length * 1.1)
    expect(zipped.headers.get('etag')).not.toBe(plain.headers.get('etag'))
    expect(plain.headers.get('vary')).toContain('Accept-Encoding')
  })

  it('an unknown URL: 404 with a page that says so and links to existing pages', async () => {
    const response = await fetch(`${app.url}/docs/operations/createUnicorn`)
    expect(response.status).toBe(404)
    const text = await response.text()
    expect(text).toContain('There is no page at this URL.')
    for (const { target } of listTargets(text))
      if (!target.startsWith('#'))
        expect((await fetch(new URL(target, response.url))).status, target).toBe(200)
  })

  it('a URL with other capital letters leads to the page', async () => {
    const { url } = await fetch(`${app.url}/docs/operations/createparticipant`)
    expect(url).toBe(`${app.url}/docs/operations/createParticipant`)
  })

  it('an unknown URL with more folders than any page: 404 as JSON', async () => {
    const { status, body } = await app.call('GET', '/docs/a/b/c/d/e')
    expect(status).toBe(404)
    expect(body).toEqual({ message: 'There is nothing at this URL.' })
  })

  it('an unknown URL with HTML in it: no page contains that HTML', async () => {
    const { text } = await app.call('GET', '/docs/%3Cscript%3Ealert(1)%3C/script%3E')
    expect(text).not.toContain('<script>alert')
  })
})

describe('the contracts', () => {
  const FILES = {
    'openapi.yaml': 'application/yaml',
    'openapi.json': 'application/json',
    'openapi-3.1.json': 'application/json',
    'asyncapi.yaml': 'application/yaml',
    'asyncapi.json': 'application/json',
  }

  const SOURCES: Record<string, string> = { 'openapi-3.1.json': 'generated/openapi-3.1.json' }

  it.each(Object.entries(FILES))(
    'GET /%s: available to tools, and to browsers of all origins',
    async (name, type) => {
      const { status, headers, text } = await app.call('GET', `/${name}`, {
        headers: { Origin: 'https://elsewhere.example' },
      })
      expect(status).toBe(200)
      expect(headers.get('content-type')).toBe(type)
      expect(headers.get('access-control-allow-origin')).toBe('*')
      expect(headers.get('access-control-allow-credentials')).toBeNull()
      const source = SOURCES[name] ?? name.replace('json', 'yaml')
      const contract = parse(await readFile(new URL(`../../${source}`, import.meta.url), 'utf8'))
      // The served API names its own URL.
      if (name.startsWith('openapi')) contract.servers[0].url = app.config.baseUrl
      expect(parse(text)).toEqual(contract)
      const again = await app.call('GET', `/${name}`, {
        headers: { 'If-None-Match': headers.get('etag') ?? '' },
      })
      expect(again).toMatchObject({ status: 304, text: '' })
      const head = await app.call('HEAD', `/${name}`)
      expect(head).toMatchObject({ status: 200, text: '' })
    },
  )

  it('are available to all origins, also with CORS_ORIGINS set', async () => {
    await using other = await startApp({ environment: { CORS_ORIGINS: 'https://console.example' } })
    const { headers } = await other.call('GET', '/openapi.json', {
      headers: { Origin: 'https://console.example' },
    })
    expect(headers.get('access-control-allow-origin')).toBe('*')
  })
})

test('pages show the limits that the service enforces', () => {
  const text = (path: string) => site.get(`${app.url}/docs/${path}`)?.text ?? ''
  expect(text('operations/createTask')).toContain('1000000 requests in 60 s')
  expect(text('guides/rate-limits')).toMatch(
    /allows each user 1000000 requests per minute and 1000 requests in\s+progress/,
  )
})

describe('muster docs', () => {
  it('writes the site as files with relative links only, and the same bytes each time', {
    timeout: 60_000,
  }, async () => {
    await using muster = await newMuster()
    const out = join(muster.dataDir, 'deep', 'site')
    const args = ['docs', '--out', out, '--server-url', 'https://api.example.com/']
    const result = await muster.json(args)
    const files = await readFiles(out)
    expect(result).toEqual({ directory: out, pages: pages().length, files: files.size })

    for (const [file, bytes] of files)
      if (file.endsWith('.html'))
        expect(bytes.toString(), file).toContain('<meta http-equiv="Content-Security-Policy"')
    expect(listBrokenLinks(files)).toEqual([])
    expect(files.get('llms.txt')?.toString()).toContain('](operations/listTasks.md)')
    const page = files.get(join('operations', 'listTasks.html'))?.toString()
    expect(page).toContain('https://api.example.com/public/v1/tasks')
    // The static edition has no form, because it cannot reach the service.
    expect(page).not.toContain('data-try')

    await muster.json(args)
    for (const [file, bytes] of await readFiles(out))
      expect(files.get(file)?.equals(bytes), file).toBe(true)
  })

  it('without --out: exits with 2', async () => {
    await using muster = await newMuster()
    const { status, stderr } = await muster.run(['docs'])
    expect(status).toBe(2)
    expect(stderr).toContain("required option '--out <dir>' not specified")
  })
})

/** The files of the folder and of the folders in it, by path. */
async function readFiles(folder: string): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>()
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile()) files.set(relative(folder, path), await readFile(path))
  }
  return files
}

/** The links of the pages that are not relative, or lead to no file or to no element. Pages may
 *  link to other hosts, but load nothing from them. */
function listBrokenLinks(files: Map<string, Buffer>): string[] {
  const broken: string[] = []
  for (const [file, bytes] of files) {
    if (!file.endsWith('.html')) continue
    for (const { attribute, target } of listTargets(bytes.toString())) {
      if (attribute === 'href' && target.startsWith('https://')) continue
      const isRelative = !/^\/|:/.test(target)
      const [path = '', fragment] = target.split('#')
      const found = files.get(path === '' ? file : normalize(join(dirname(file), path)))
      const exists =
        found !== undefined &&
        (fragment === undefined || listIds(found.toString()).includes(decodeURIComponent(fragment)))
      if (!isRelative || !exists) broken.push(`${file} -> ${target}`)
    }
  }
  return broken
}
