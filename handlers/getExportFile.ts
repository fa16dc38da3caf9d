import { Readable } from 'node:stream'
import type { Context } from '../operations/context.ts'
import { type Export, findExport, readFile } from '../records/exports.ts'

const MEDIA_TYPES = { csv: 'text/csv', json: 'application/json' }

export async function getExportFile(ctx: Context<'getExportFile'>): Promise<void> {
  const { scope, path, principal, now } = ctx.state
  const found = await findExport(scope, path.export)
  ctx.assert(found, 404, 'There is no such export.')
  const isPermitted = found.resource !== 'payments' || principal.finance !== 'none'
  ctx.assert(
    isPermitted,
    403,
    'The owner of this API key has no Finance permission to read payments.',
  )
  ctx.assert(found.status !== 'failed', 409, `The export failed. ${found.error}`)
  const { byte_size, sha256, expires_at } = found
  ctx.assert(
    byte_size !== null && sha256 !== null && expires_at !== null,
    409,
    'The export is still being made.',
  )
  ctx.assert(
    now.getTime() < Date.parse(expires_at),
    410,
    'The file of this export has expired. Request a new one.',
  )

  // Before the body: Koa would add a charset, or choose a type of its own.
  ctx.set('Content-Type', MEDIA_TYPES[found.format])
  ctx.set('Content-Length', String(byte_size))
  ctx.set('Content-Disposition', `attachment; filename="${fileName(found)}"`)
  ctx.set('Repr-Digest', `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:`)
  // A client that goes away ends the stream, and the stream the reading.
  ctx.body = Readable.from(readFile(scope, found), { objectMode: false })
}

/** Such as `participants-2026-03-02T093000Z.csv`: a name that every file system takes. */
function fileName({ resource, format, created_at }: Export): string {
  return `${resource}-${created_at.replace(/:|\.\d+/g, '')}.${format}`
}
