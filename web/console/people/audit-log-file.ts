/** The entries of the audit log as a file, without values of records. */
import type { AuditEntry } from '../../../records/audit-log.ts'
import { csvText } from '../csv.ts'

const COLUMNS: Record<string, (entry: AuditEntry) => unknown> = {
  id: ({ id }) => id,
  time: ({ createdAt }) => new Date(createdAt).toISOString(),
  action: ({ action }) => action,
  target_type: ({ target }) => target.type,
  target_id: ({ target }) => target.id,
  target_name: ({ target }) => target.name,
  changed_fields: ({ fields }) => fields,
  user: ({ userName }) => userName,
  user_id: ({ userId }) => userId,
  api_key: ({ apiKey }) => apiKey?.name ?? null,
  api_key_id: ({ apiKey }) => apiKey?.id ?? null,
  ip: ({ ip }) => ip,
  request_id: ({ requestId }) => requestId,
}

export async function* auditLogCsv(batches: AsyncIterable<AuditEntry[]>): AsyncGenerator<string> {
  yield csvText([Object.keys(COLUMNS)])
  for await (const batch of batches)
    yield csvText(batch.map((entry) => Object.values(COLUMNS).map((read) => toCell(read(entry)))))
}

const toCell = (value: unknown): unknown => (Array.isArray(value) ? value.join(' ') : value)

export async function* auditLogNdjson(
  batches: AsyncIterable<AuditEntry[]>,
): AsyncGenerator<string> {
  for await (const batch of batches) yield batch.map(toLine).join('')
}

function toLine(entry: AuditEntry): string {
  const values = Object.entries(COLUMNS).map(([name, read]) => [name, read(entry)])
  return `${JSON.stringify(Object.fromEntries(values))}\n`
}
