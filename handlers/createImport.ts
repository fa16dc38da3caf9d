import { JOBS_DUE } from '../records/due-work.ts'
import { assertImportPermitted, type Import, insertImport } from '../records/imports.ts'
import { assertFileQuotas } from '../records/stored-files.ts'
import type { Call } from './call.ts'

export async function createImport(call: Call<'createImport'>): Promise<Import> {
  const { scope, query, body: upload, caller, quotas, now, emit } = call
  assertImportPermitted(query, caller, 'write')
  await assertFileQuotas(scope, 'imports', quotas)
  const { resource, mode, dry_run: isDryRun, columns = null } = query
  const input = {
    id: upload.id,
    userId: caller.userId,
    apiKeyId: caller.apiKey?.id ?? null,
    resource,
    mode,
    format: upload.mediaType === 'text/csv' ? ('csv' as const) : ('ndjson' as const),
    isDryRun,
    columns,
    byteSize: upload.byteSize,
  }
  const created = await insertImport(scope, input, now)
  await emit('import.created', created.id)
  scope.trx.announce(JOBS_DUE)
  return created
}
