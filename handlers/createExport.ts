import { StatusError } from '../errors.ts'
import { JOBS_DUE } from '../records/due-work.ts'
import { type Export, insertExport } from '../records/exports.ts'
import type { Call } from './call.ts'

export async function createExport(call: Call<'createExport'>): Promise<Export> {
  const { scope, input, caller, now, emit } = call
  if (input.resource === 'payments' && caller.finance === 'none')
    throw new StatusError(
      403,
      'The owner of this API key has no Finance permission to read payments.',
    )
  const created = await insertExport(scope, input, now)
  await emit('export.created', created.id)
  scope.trx.announce(JOBS_DUE)
  return created
}
