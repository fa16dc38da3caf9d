import { JOBS_DUE } from '../records/due-work.ts'
import { assertExportPermitted, type Export, insertExport } from '../records/exports.ts'
import { assertFileQuotas } from '../records/stored-files.ts'
import type { Call } from './call.ts'

export async function createExport(call: Call<'createExport'>): Promise<Export> {
  const { scope, body, caller, quotas, now, emit } = call
  assertExportPermitted(body, caller)
  await assertFileQuotas(scope, 'exports', quotas)
  const created = await insertExport(scope, body, now)
  await emit('export.created', created.id)
  scope.trx.announce(JOBS_DUE)
  return created
}
