import { assertFound } from '../errors.ts'
import { type Export, findExport } from '../records/exports.ts'
import type { Call } from './call.ts'

export async function getExport(call: Call<'getExport'>): Promise<Export> {
  const found = await findExport(call.scope, call.path.export_id)
  assertFound(found, 'export')
  return found
}
