import { assertFound } from '../errors.ts'
import {
  assertImportPermitted,
  deleteImportRow,
  importListing,
  importTarget,
} from '../records/imports.ts'
import { findRecord } from '../records/list.ts'
import type { Call } from './call.ts'

export async function deleteImport(call: Call<'deleteImport'>): Promise<void> {
  const { scope, path, caller, assertMatch, audit } = call
  const current = await findRecord(scope, importListing, path.import_id, { forUpdate: true })
  assertFound(current, 'import')
  assertImportPermitted(current, caller, 'read')
  assertMatch(current)
  await deleteImportRow(scope, current.id)
  await audit(scope, 'import.deleted', importTarget(current), { resource: current.resource })
}
