/** The files that pages load, and the contracts. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Asset,
  folderName,
  ROOT,
  readAssets,
  resolvePackage,
  SHARED_FILES,
  stylesheets,
  toAsset,
} from '../shared/assets.ts'

type Assets = ReadonlyMap<string, Asset>

const STYLESHEETS = ['base', 'frame', 'home', 'reference', 'code', 'try', 'search', 'media']
const SCRIPTS = ['theme.js', 'docs.js', 'try.js', 'search.js', 'search-words.js']

/** The served contracts, by name. */
export const CONTRACT_FILES = {
  'openapi.json': 'generated/openapi.json',
  'openapi.yaml': 'openapi.yaml',
  'openapi-3.1.json': 'generated/openapi-3.1.json',
  'asyncapi.json': 'generated/asyncapi.json',
  'asyncapi.yaml': 'asyncapi.yaml',
} as const

/** The contracts of `root`, with `baseUrl` as the server of the API. */
export function readContracts(root: string, baseUrl: string): ReadonlyMap<string, Asset> {
  return new Map(
    Object.entries(CONTRACT_FILES).map(([name, file]) => {
      const text = readFileSync(join(root, file), 'utf8')
      const served = name.startsWith('openapi') ? replaceServer(name, text, baseUrl) : text
      return [name, toAsset(name, served)]
    }),
  )
}

/** Our contracts name no host: their first server is `/`. Throws if it is another one. */
function replaceServer(name: string, text: string, baseUrl: string): string {
  if (name.endsWith('.json')) {
    const contract = JSON.parse(text)
    assertServer(name, contract.servers?.[0]?.url)
    contract.servers[0].url = baseUrl
    return `${JSON.stringify(contract, null, 2)}\n`
  }
  // Replaces text: a YAML writer would move the comments, and break lines elsewhere.
  const [server, url] = /^servers:\n {2}- url: (.*)$/m.exec(text) ?? []
  assertServer(name, url)
  return text.replace(String(server), () => `servers:\n  - url: ${baseUrl}`)
}

function assertServer(name: string, url: string | undefined): void {
  if (url !== '/') throw new Error(`The first server of ${name} must be "/", but is ${url}`)
}

/** The assets by the path under which they are served. The name of their folder changes with their
 *  contents. */
export function readDocsAssets(searchIndex: string): { folder: string; assets: Assets } {
  const assets = readAssets(ROOT, {
    'docs.css': stylesheets('web/docs/client', STYLESHEETS),
    ...Object.fromEntries(SCRIPTS.map((name) => [name, [`web/docs/client/${name}`]])),
    'minisearch.js': [join(resolvePackage('minisearch'), '../../es/index.js')],
    ...SHARED_FILES,
  })
  assets.set('search.json', toAsset('search.json', searchIndex))
  const folder = `assets/${folderName(assets)}`
  const paths = [...assets].map(([name, asset]): [string, Asset] => [`${folder}/${name}`, asset])
  return { folder, assets: new Map(paths) }
}
