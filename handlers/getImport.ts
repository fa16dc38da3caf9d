import { assertFound } from '../errors.ts'
import { type Import, importListing } from '../records/imports.ts'
import { findRecord } from '../records/list.ts'
import type { Call } from './call.ts'

export async function getImport(call: Call<'getImport'>): Promise<Import> {
  const found = await findRecord(call.scope, importListing, call.path.import_id)
  assertFound(found, 'import')
  return found
}
