import { assertFound } from '../errors.ts'
import {
  assertExportPermitted,
  deleteExportRow,
  exportListing,
  exportTarget,
} from '../records/exports.ts'
import { findRecord } from '../records/list.ts'
import type { Call } from './call.ts'

export async function deleteExport(call: Call<'deleteExport'>): Promise<void> {
  const { scope, path, caller, assertMatch, audit } = call
  const current = await findRecord(scope, exportListing, path.export_id, { forUpdate: true })
  assertFound(current, 'export')
  assertExportPermitted(current, caller)
  assertMatch(current)
  await deleteExportRow(scope, current.id)
  await audit(scope, 'export.deleted', exportTarget(current), { resource: current.resource })
}
