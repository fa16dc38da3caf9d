/** The files that pages load, and the contracts. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { extname, join } from 'node:path'

export interface Asset {
  type: string
  bytes: Buffer
}

type Assets = ReadonlyMap<string, Asset>

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
  '.yaml': 'application/yaml',
}

const STYLESHEETS = ['base', 'frame', 'home', 'reference', 'code', 'try', 'search', 'media'].map(
  (name) => `web/docs/client/${name}.css`,
)
const FONTS = 'node_modules/@fontsource-variable'

/** The files that each asset consists of. */
const ASSET_FILES: Record<string, string[]> = {
  'tokens.css': ['web/shared/tokens.css'],
  'docs.css': STYLESHEETS,
  'theme.js': ['web/docs/client/theme.js'],
  'docs.js': ['web/docs/client/docs.js'],
  'try.js': ['web/docs/client/try.js'],
  'search.js': ['web/docs/client/search.js'],
  'search-words.js': ['web/docs/client/search-words.js'],
  'icon.svg': ['web/shared/icon.svg'],
  'minisearch.js': ['node_modules/minisearch/dist/es/index.js'],
  'geist.woff2': [`${FONTS}/geist/files/geist-latin-wght-normal.woff2`],
  'geist-mono.woff2': [`${FONTS}/geist-mono/files/geist-mono-latin-wght-normal.woff2`],
}

/** The served contracts, by name. */
export const CONTRACT_FILES = {
  'openapi.json': 'generated/openapi.json',
  'openapi.yaml': 'openapi.yaml',
  'openapi-3.1.json': 'generated/openapi-3.1.json',
  'asyncapi.json': 'generated/asyncapi.json',
  'asyncapi.yaml': 'asyncapi.yaml',
} as const

/** The contracts, with `baseUrl` as the server of the API. */
export function readContracts(root: string, baseUrl: string): ReadonlyMap<string, Asset> {
  return new Map(
    Object.entries(CONTRACT_FILES).map(([name, file]) => {
      const text = readFileSync(join(root, file), 'utf8')
      const served = name.startsWith('openapi') ? replaceServer(text, baseUrl) : text
      return [name, { type: TYPES[extname(name)] ?? '', bytes: Buffer.from(served) }]
    }),
  )
}

/** The source names no host: its server is `/`. */
function replaceServer(text: string, baseUrl: string): string {
  return text
    .replace('servers:\n  - url: /\n', `servers:\n  - url: ${baseUrl}\n`)
    .replace('"url": "/"', `"url": ${JSON.stringify(baseUrl)}`)
}

/** The assets in one folder whose name is a hash of them, so that clients can cache them forever. */
export function readAssets(root: string, searchIndex: string): { folder: string; assets: Assets } {
  const assets = readFiles(root, ASSET_FILES)
  assets.set('search.json', { type: 'application/json', bytes: Buffer.from(searchIndex) })
  const hash = createHash('sha256')
  for (const [name, { bytes }] of assets) hash.update(name).update(bytes)
  const folder = `assets/${hash.digest('hex').slice(0, 12)}`
  const paths = [...assets].map(([name, asset]): [string, Asset] => [`${folder}/${name}`, asset])
  return { folder, assets: new Map(paths) }
}

function readFiles(root: string, filesByName: Record<string, string[]>): Map<string, Asset> {
  return new Map(
    Object.entries(filesByName).map(([name, files]) => [
      name,
      {
        type: TYPES[extname(name)] ?? 'application/octet-stream',
        bytes: Buffer.concat(files.map((file) => readFileSync(join(root, file)))),
      },
    ]),
  )
}
