/** Style sheet, scripts, icon and fonts of the console. */
import type { Context } from 'koa'
import {
  type Asset,
  CACHE_FOREVER,
  folderName,
  ROOT,
  readAssets,
  SHARED_FILES,
  sendAsset,
  stylesheets,
} from '../shared/assets.ts'

export interface Assets {
  /** The URL path of the folder. It changes with the files. */
  folder: string
  files: Map<string, Asset>
}

const STYLESHEETS = [
  'base',
  'frame',
  'parts',
  'tables',
  'forms',
  'code',
  'media',
  'people',
  'records',
  'charts',
  'requests',
  'overview',
  'search',
  'requests-media',
  'webhooks',
  'deliveries',
  'webhooks-media',
]

const SCRIPTS = ['console', 'times', 'announce', 'submit', 'live', 'combobox', 'keys']

export function readConsoleAssets(): Assets {
  const files = readAssets(ROOT, {
    'console.css': stylesheets('web/console/client', STYLESHEETS),
    ...Object.fromEntries(SCRIPTS.map((name) => [`${name}.js`, [`web/console/client/${name}.js`]])),
    'htmx.js': ['node_modules/htmx.org/dist/htmx.min.js'],
    ...SHARED_FILES,
  })
  return { folder: `/console/assets/${folderName(files)}`, files }
}

/** Throws 404 for a path without a file. */
export async function sendConsoleAsset(ctx: Context, { folder, files }: Assets): Promise<void> {
  const asset = ctx.path.startsWith(`${folder}/`)
    ? files.get(ctx.path.slice(folder.length + 1))
    : undefined
  if (!asset) return ctx.throw(404)
  ctx.set('Cache-Control', CACHE_FOREVER)
  await sendAsset(ctx, asset)
}
