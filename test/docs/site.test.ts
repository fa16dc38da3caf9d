import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, normalize, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { eventTypes } from '../../generated/events.ts'
import contract from '../../generated/openapi.json' with { type: 'json' }
import { operations } from '../../generated/operations.ts'
import { openSite } from '../../web/docs/site.ts'
import { newMuster } from '../cli/muster.ts'
import { operationIds, startApp, type TestApp } from '../helpers.ts'
import { listIds, listTargets } from './pages.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const MAX_FIRST_LOAD_BYTES = 1.5 * 1024 * 1024

interface Fetched {
  response: Response
  text: string
}

// biome-ignore lint/suspicious/noExplicitAny: other tests check the contracts.
type Node = any

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
    if (isPage(fetched))
      queue.push(...linksFrom(url, fetched.text).filter((link) => link.startsWith(app.url)))
  }
}, 120_000)
afterAll(async () => app[Symbol.asyncDispose]())

function isPage({ response }: Fetched): boolean {
  return response.headers.get('content-type') === 'text/html; charset=utf-8'
}

/** The URLs that a page links to or loads, without fragments. */
function linksFrom(url: string, text: string): string[] {
  return listTargets(text).map(({ target }) => new URL(target, url).href.replace(/#.*$/, ''))
}

/** The URLs that the section with this heading links to. */
function linksFromSection(url: string, id: string): string[] {
  const text = site.get(url)?.text ?? ''
  const [section = ''] = new RegExp(`<h2 id="${id}">.*?</section>`, 's').exec(text) ?? []
  return linksFrom(url, section)
}

const pages = () =>
  [...site]
    .filter(([, fetched]) => isPage(fetched))
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

  it('has no broken link, also none to a missing fragment', () => {
    expect(pages().length).toBeGreaterThan(operationIds.length + Object.keys(eventTypes).length)
    const broken = pages().flatMap(({ url, text }) =>
      listTargets(text)
        .map(({ target }) => new URL(target, url).href)
        .filter((link) => link.startsWith(app.url))
        .filter((link) => {
          const [target = '', fragment] = link.split('#')
          const found = site.get(target)
          return (
            found?.response.status !== 200 ||
            (fragment !== undefined && !listIds(found.text).includes(decodeURIComponent(fragment)))
          )
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
    const follow = (node: { $ref?: string }) =>
      node.$ref ? components[node.$ref.split('/')[2] ?? ''][node.$ref.split('/')[3] ?? ''] : node
    for (const item of Object.values<Node>(paths))
      for (const operation of Object.values<Node>(item).filter(({ operationId }) => operationId)) {
        const text = pageAt(`operations/${operation.operationId}`)?.text
        const body = operation.requestBody
          ? follow(follow(operation.requestBody).content['application/json'].schema).properties
          : {}
        const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map(
          (parameter) => follow(parameter).name,
        )
        for (const name of [...parameters, ...Object.keys(body)])
          expect(text, operation.operationId).toContain(`<code class="field-name">${name}</code>`)
        for (const status of Object.keys(operation.responses))
          expect(text, operation.operationId).toContain(`id="response-${status}"`)
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
    const weights = pages().map(({ url, text }) => {
      const assets = [...new Set(linksFrom(url, text))].filter((link) =>
        link.includes('/docs/assets/'),
      )
      return (
        Buffer.byteLength(text) +
        assets.reduce((sum, link) => sum + Buffer.byteLength(site.get(link)?.text ?? ''), 0)
      )
    })
    expect(Math.max(...weights)).toBeLessThan(MAX_FIRST_LOAD_BYTES)
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

  it('an unknown URL: 404 with a page that says so', async () => {
    const response = await fetch(`${app.url}/docs/operations/createUnicorn`)
    expect(response.status).toBe(404)
    const text = await response.text()
    expect(text).toContain('There is no page at this URL.')
    for (const { target } of listTargets(text))
      if (!target.startsWith('#'))
        expect((await fetch(new URL(target, response.url))).status, target).toBe(200)
    // No page has a path this long, so the API's 404 is enough.
    expect((await app.call('GET', '/docs/a/b/c/d/e')).body).toEqual({
      message: 'There is nothing at this URL.',
    })
    expect((await app.call('GET', '/docs/%3Cscript%3Ealert(1)%3C/script%3E')).text).not.toContain(
      '<script>alert',
    )
  })
})

describe('the changelog', () => {
  it('has a page if CHANGELOG.md exists; deprecated operations and events are marked', async () => {
    const root = await mkdtemp(join(tmpdir(), 'muster-docs-'))
    try {
      for (const name of ['web', 'docs', 'node_modules', 'openapi.yaml', 'asyncapi.yaml'])
        await symlink(join(ROOT, name), join(root, name))
      await mkdir(join(root, 'generated'))
      const contracts: Record<string, Node> = {}
      for (const name of ['openapi.json', 'openapi-3.1.json', 'asyncapi.json'])
        contracts[name] = JSON.parse(await readFile(join(ROOT, 'generated', name), 'utf8'))
      const days = { 'x-deprecated-since': '2026-05-01', 'x-sunset': '2027-05-01' }
      Object.assign(contracts['openapi.json'].paths['/public/v1/tasks'].get, {
        deprecated: true,
        ...days,
      })
      Object.assign(contracts['asyncapi.json'].components.messages.TaskCreated, days)
      for (const [name, contract] of Object.entries(contracts))
        await writeFile(join(root, 'generated', name), JSON.stringify(contract))
      await writeFile(
        join(root, 'CHANGELOG.md'),
        '# Changelog\n\n## 2.0.0\n\n- **breaking** `listTasks`: see [the package](package.json). <b>\n',
      )
      const docs = openSite({ baseUrl: 'https://api.example.com', edition: 'server', root })
      expect(docs.page('changelog')).toContain('<h2 id="2-0-0">2.0.0</h2>')
      // Operation names become links, HTML is escaped, and links to unpublished files become text.
      expect(docs.page('changelog')).toContain(
        '<a href="operations/listTasks"><code>listTasks</code></a>: see the package. &lt;b&gt;',
      )
      expect(docs.page('index')).toContain('href="changelog"')
      for (const id of ['operations/listTasks', 'events/task.created'])
        expect(
          docs
            .page(id)
            ?.replace(/<[^>]*>/g, '')
            .replace(/\s+/g, ' '),
        ).toContain(
          'Deprecated since 2026-05-01: do not use it in new code. It may be removed on or after 2027-05-01.',
        )
    } finally {
      await rm(root, { recursive: true, force: true })
    }
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

describe('muster docs', () => {
  it('writes the site as files with relative links only', {
    timeout: 60_000,
  }, async () => {
    await using muster = await newMuster()
    const directory = await mkdtemp(join(tmpdir(), 'muster-docs-'))
    try {
      const out = join(directory, 'deep', 'site')
      const args = ['docs', '--out', out, '--server-url', 'https://api.example.com/']
      const result = await muster.json(args)
      const files = new Map<string, Buffer>()
      for (const entry of await readdir(out, { recursive: true, withFileTypes: true })) {
        const path = join(entry.parentPath, entry.name)
        if (entry.isFile()) files.set(relative(out, path), await readFile(path))
      }
      expect(result).toEqual({ directory: out, pages: pages().length, files: files.size })
      const broken: string[] = []
      for (const [file, bytes] of files) {
        if (!file.endsWith('.html')) continue
        const text = bytes.toString()
        expect(text, file).toContain('<meta http-equiv="Content-Security-Policy"')
        for (const { attribute, target } of listTargets(text)) {
          if (attribute === 'href' && target.startsWith('https://')) continue
          const [path = '', fragment] = target.split('#')
          const found = files.get(path === '' ? file : normalize(join(dirname(file), path)))
          const exists =
            found &&
            (fragment === undefined ||
              listIds(found.toString()).includes(decodeURIComponent(fragment)))
          if (/^\/|:/.test(target) || !exists) broken.push(`${file} -> ${target}`)
        }
      }
      expect(broken).toEqual([])
      const page = files.get(join('operations', 'listTasks.html'))?.toString()
      expect(page).toContain('https://api.example.com/public/v1/tasks')
      // The static edition has no form, because it cannot reach the service.
      expect(page).not.toContain('data-try')

      expect(files.get('llms.txt')?.toString()).toContain('](operations/listTasks.md)')

      // The same input gives the same bytes.
      await muster.json(args)
      for (const [file, bytes] of files)
        expect((await readFile(join(out, file))).equals(bytes), file).toBe(true)
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })

  it('without --out: exits with 2', async () => {
    await using muster = await newMuster()
    const { status, stderr } = await muster.run(['docs'])
    expect(status).toBe(2)
    expect(stderr).toContain("required option '--out <dir>' not specified")
  })
})
