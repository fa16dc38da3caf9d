/** The files that pages load, and the contracts. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Asset,
  folderName,
  ROOT,
  readAssets,
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

/** The contracts that exist in `root`, with `baseUrl` as the server of the API. */
export function readContracts(root: string, baseUrl: string): ReadonlyMap<string, Asset> {
  const existing = Object.entries(CONTRACT_FILES).filter(([, file]) => existsSync(join(root, file)))
  return new Map(
    existing.map(([name, file]) => {
      const text = readFileSync(join(root, file), 'utf8')
      const served = name.startsWith('openapi') ? replaceServer(text, baseUrl) : text
      return [name, toAsset(name, served)]
    }),
  )
}

/** Our contracts name no host: their server is `/`. Servers other than `/` stay as they are. */
function replaceServer(text: string, baseUrl: string): string {
  return text
    .replace('servers:\n  - url: /\n', () => `servers:\n  - url: ${baseUrl}\n`)
    .replace('"url": "/"', () => `"url": ${JSON.stringify(baseUrl)}`)
}

/** The assets by the path under which they are served. The name of their folder changes with their
 *  contents. */
export function readDocsAssets(searchIndex: string): { folder: string; assets: Assets } {
  const assets = readAssets(ROOT, {
    'docs.css': stylesheets('web/docs/client', STYLESHEETS),
    ...Object.fromEntries(SCRIPTS.map((name) => [name, [`web/docs/client/${name}`]])),
    'minisearch.js': ['node_modules/minisearch/dist/es/index.js'],
    ...SHARED_FILES,
  })
  assets.set('search.json', toAsset('search.json', searchIndex))
  const folder = `assets/${folderName(assets)}`
  const paths = [...assets].map(([name, asset]): [string, Asset] => [`${folder}/${name}`, asset])
  return { folder, assets: new Map(paths) }
}
