/** Style sheet, scripts, icon and fonts of the console. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Context } from 'koa'
import { stylesheets } from './stylesheets.ts'

interface Asset {
  type: string
  bytes: Buffer
  gzipped?: Promise<Buffer>
}

export interface Assets {
  /** The URL path. It contains a hash of all files, so browsers may cache them for ever. */
  folder: string
  files: Map<string, Asset>
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const YEAR_S = 365 * 24 * 60 * 60

export function readConsoleAssets(): Assets {
  const read = (file: string): Buffer => readFileSync(join(ROOT, file))
  const css = Buffer.concat(stylesheets.map(read))
  const font = (name: string): Asset => ({
    type: 'font/woff2',
    bytes: read(`node_modules/@fontsource-variable/${name}/files/${name}-latin-wght-normal.woff2`),
  })
  const script = (file: string): Asset => ({
    type: 'text/javascript; charset=utf-8',
    bytes: read(file),
  })
  const files: Assets['files'] = new Map(
    Object.entries({
      'console.css': { type: 'text/css; charset=utf-8', bytes: css },
      'console.js': script('web/console/client/console.js'),
      'htmx.js': script('node_modules/htmx.org/dist/htmx.min.js'),
      'icon.svg': { type: 'image/svg+xml', bytes: read('web/shared/icon.svg') },
      'geist.woff2': font('geist'),
      'geist-mono.woff2': font('geist-mono'),
    }),
  )
  const hash = createHash('sha256')
  for (const [name, { bytes }] of files) hash.update(name).update(bytes)
  return { folder: `/console/assets/${hash.digest('hex').slice(0, 12)}`, files }
}

/** Throws 404. */
export async function sendAsset(ctx: Context, { folder, files }: Assets): Promise<void> {
  const file = ctx.path.startsWith(`${folder}/`)
    ? files.get(ctx.path.slice(folder.length + 1))
    : undefined
  if (!file) return ctx.throw(404)
  ctx.set('Cache-Control', `public, max-age=${YEAR_S}, immutable`)
  ctx.set('Content-Type', file.type)
  ctx.vary('Accept-Encoding')
  if (file.type === 'font/woff2' || ctx.acceptsEncodings('gzip', 'identity') !== 'gzip') {
    ctx.body = file.bytes
    return
  }
  file.gzipped ??= promisify(gzip)(file.bytes, { level: 9 })
  ctx.set('Content-Encoding', 'gzip')
  ctx.body = await file.gzipped
}
