import { assertFound } from '../errors.ts'
import { assertExportPermitted, deleteExportRow, findExport } from '../records/exports.ts'
import type { Call } from './call.ts'

export async function deleteExport(call: Call<'deleteExport'>): Promise<void> {
  const { scope, path, caller, assertMatch } = call
  const current = await findExport(scope, path.export_id, { forUpdate: true })
  assertFound(current, 'export')
  assertExportPermitted(current, caller)
  assertMatch(current)
  await deleteExportRow(scope, current.id)
}
