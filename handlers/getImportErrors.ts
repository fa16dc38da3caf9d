import { Readable } from 'node:stream'
import { assertFound, StatusError } from '../errors.ts'
import type { FileBody } from '../generated/operations.ts'
import {
  assertImportPermitted,
  importListing,
  importTarget,
  readImportFile,
} from '../records/imports.ts'
import { findRecord } from '../records/list.ts'
import type { Call } from './call.ts'

const MEDIA_TYPES = { csv: 'text/csv', ndjson: 'application/x-ndjson' }

export async function getImportErrors(call: Call<'getImportErrors'>): Promise<FileBody> {
  const { scope, path, caller, now, auditDownload } = call
  const found = await findRecord(scope, importListing, path.import_id)
  assertFound(found, 'import')
  assertImportPermitted(found, caller, 'read')
  const { id, resource, format, refused_count, expires_at } = found
  if (expires_at === null) throw new StatusError(409, 'The import has not ended yet.')
  if (now.getTime() >= Date.parse(expires_at))
    throw new StatusError(410, 'The file of this import has expired. Import the rows again.')
  const details = { resource, format, row_count: refused_count }
  await auditDownload(importTarget(found), details)
  return {
    headers: {
      'Content-Type': MEDIA_TYPES[format],
      'Content-Disposition': `attachment; filename="${resource}-refused.${format}"`,
    },
    stream: Readable.from(readImportFile(scope, id, 'errors'), { objectMode: false }),
  }
}
