import { assertFound } from '../errors.ts'
import { assertExportPermitted, deleteExportRow, exportListing } from '../records/exports.ts'
import { findRecord } from '../records/list.ts'
import type { Call } from './call.ts'

export async function deleteExport(call: Call<'deleteExport'>): Promise<void> {
  const { scope, path, caller, assertMatch } = call
  const current = await findRecord(scope, exportListing, path.export_id, { forUpdate: true })
  assertFound(current, 'export')
  assertExportPermitted(current, caller)
  assertMatch(current)
  await deleteExportRow(scope, current.id)
}
