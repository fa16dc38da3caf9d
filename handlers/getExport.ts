import { assertFound } from '../errors.ts'
import { type Export, exportListing } from '../records/exports.ts'
import { findRecord } from '../records/list.ts'
import type { Call } from './call.ts'

export async function getExport(call: Call<'getExport'>): Promise<Export> {
  const found = await findRecord(call.scope, exportListing, call.path.export_id)
  assertFound(found, 'export')
  return found
}
