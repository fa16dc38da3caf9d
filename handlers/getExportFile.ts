import { Readable } from 'node:stream'
import { assertFound, StatusError } from '../errors.ts'
import type { FileBody } from '../generated/operations.ts'
import {
  assertExportPermitted,
  exportListing,
  exportTarget,
  readExportFile,
} from '../records/exports.ts'
import { findRecord } from '../records/list.ts'
import type { Call } from './call.ts'

const MEDIA_TYPES = {
  csv: 'text/csv',
  csv_raw: 'text/csv',
  json: 'application/json',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
}

export async function getExportFile(call: Call<'getExportFile'>): Promise<FileBody> {
  const { scope, path, caller, now, auditDownload } = call
  const found = await findRecord(scope, exportListing, path.export_id)
  assertFound(found, 'export')
  assertExportPermitted(found, caller)
  if (found.status === 'failed') throw new StatusError(409, `The export failed. ${found.error}`)
  const { byte_size, sha256, expires_at } = found
  if (byte_size === null || sha256 === null || expires_at === null)
    throw new StatusError(409, 'The export is not ready yet.')
  if (now.getTime() >= Date.parse(expires_at))
    throw new StatusError(410, 'The file of this export has expired. Request a new one.')
  const { resource, format, row_count } = found
  const target = exportTarget(found)
  await auditDownload(target, { resource, format, row_count })
  return {
    headers: {
      'Content-Type': MEDIA_TYPES[found.format],
      'Content-Length': String(byte_size),
      'Content-Disposition': `attachment; filename="${target.name}"`,
      'Repr-Digest': `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:`,
    },
    // Reads chunk by chunk. When the client disconnects, Koa destroys the stream, which stops the
    // reading.
    stream: Readable.from(readExportFile(scope, found), { objectMode: false }),
  }
}
