/** Files that browsers load: style sheets, scripts, fonts, icons and contracts. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { extname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Context } from 'koa'
import { ifNoneMatchNames } from '../../operations/etag.ts'

export interface Asset {
  type: string
  bytes: Buffer
  /** The bytes of earlier responses, by encoding. */
  encoded: Map<string, Promise<Encoded>>
}

interface Encoded {
  bytes: Buffer
  etag: string
}

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.md': 'text/markdown; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.woff2': 'font/woff2',
  '.yaml': 'application/yaml',
}

/** The folder of the repository. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The file that `require` loads, wherever npm has installed the package. */
export const resolvePackage = createRequire(import.meta.url).resolve

/** The assets that all pages share, and the files that each asset consists of. */
export const SHARED_FILES: Record<string, string[]> = {
  'icon.svg': ['web/shared/icon.svg'],
  'geist.woff2': [resolvePackage('@fontsource-variable/geist/files/geist-latin-wght-normal.woff2')],
  'geist-mono.woff2': [
    resolvePackage('@fontsource-variable/geist-mono/files/geist-mono-latin-wght-normal.woff2'),
  ],
}

/** The style sheets in `folder` and the shared ones, in the order of the cascade. */
export function stylesheets(folder: string, names: string[]): string[] {
  return [
    'web/shared/tokens.css',
    'web/shared/base.css',
    ...names.map((name) => `${folder}/${name}.css`),
    'web/shared/media.css',
  ]
}

export function readAssets(
  root: string,
  filesByName: Record<string, string[]>,
): Map<string, Asset> {
  return new Map(
    Object.entries(filesByName).map(([name, files]) => [
      name,
      toAsset(name, Buffer.concat(files.map((file) => readFileSync(resolve(root, file))))),
    ]),
  )
}

export function toAsset(name: string, content: Buffer | string): Asset {
  return {
    type: TYPES[extname(name)] ?? 'application/octet-stream',
    bytes: Buffer.from(content),
    encoded: new Map(),
  }
}

/** A name for the folder of these assets. The name changes with the assets, so browsers may cache
 *  them forever. */
export function folderName(assets: ReadonlyMap<string, Asset>): string {
  const hash = createHash('sha256')
  for (const [name, { bytes }] of assets) hash.update(name).update(bytes)
  return hash.digest('hex').slice(0, 12)
}

const YEAR_S = 365 * 24 * 60 * 60
export const CACHE_FOREVER = `public, max-age=${YEAR_S}, immutable`

export async function sendAsset(ctx: Context, asset: Asset): Promise<void> {
  const isCompressed = asset.type === 'font/woff2'
  const encoding = isCompressed
    ? 'identity'
    : ctx.acceptsEncodings('gzip', 'identity') || 'identity'
  const { bytes, etag } = await encodeOnce(asset, encoding)
  ctx.vary('Accept-Encoding')
  ctx.set('ETag', etag)
  if (ifNoneMatchNames(ctx.get('If-None-Match'), etag)) {
    ctx.status = 304
    return
  }
  if (encoding === 'gzip') ctx.set('Content-Encoding', 'gzip')
  ctx.set('Content-Type', asset.type)
  ctx.body = bytes
}

function encodeOnce(asset: Asset, encoding: string): Promise<Encoded> {
  const encoded = asset.encoded.get(encoding) ?? encode(asset, encoding)
  asset.encoded.set(encoding, encoded)
  return encoded
}

/** Each encoding has its own ETag (RFC 9110 §8.8.3.3). */
async function encode(asset: Asset, encoding: string): Promise<Encoded> {
  const bytes = encoding === 'gzip' ? await promisify(gzip)(asset.bytes, { level: 9 }) : asset.bytes
  const hash = createHash('sha256').update(bytes).digest('base64url')
  return { bytes, etag: `"${hash.slice(0, 22)}"` }
}
