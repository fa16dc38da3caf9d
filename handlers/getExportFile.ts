import { Readable } from 'node:stream'
import { assertFound, StatusError } from '../errors.ts'
import type { FileBody } from '../generated/operations.ts'
import {
  assertExportPermitted,
  type Export,
  exportListing,
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
  const { scope, path, caller, now } = call
  const found = await findRecord(scope, exportListing, path.export_id)
  assertFound(found, 'export')
  assertExportPermitted(found, caller)
  if (found.status === 'failed') throw new StatusError(409, `The export failed. ${found.error}`)
  const { byte_size, sha256, expires_at } = found
  if (byte_size === null || sha256 === null || expires_at === null)
    throw new StatusError(409, 'The export is not ready yet.')
  if (now.getTime() >= Date.parse(expires_at))
    throw new StatusError(410, 'The file of this export has expired. Request a new one.')

  return {
    headers: {
      'Content-Type': MEDIA_TYPES[found.format],
      'Content-Length': String(byte_size),
      'Content-Disposition': `attachment; filename="${fileName(found)}"`,
      'Repr-Digest': `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:`,
    },
    // Reads chunk by chunk. When the client disconnects, Koa destroys the stream, which stops the
    // reading.
    stream: Readable.from(readExportFile(scope, found), { objectMode: false }),
  }
}

/** A name that every file system accepts, for example `participants-2026-03-02T093000Z.csv`. */
function fileName({ resource, format, created_at }: Export): string {
  const extension = format.replace(/_raw$/, '')
  return `${resource}-${created_at.replace(/:|\.\d+/g, '')}.${extension}`
}
