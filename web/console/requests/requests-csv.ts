/** The list of API requests as a CSV file. */
import type { RequestEntry } from '../../../records/request-log.ts'
import type { User } from '../../../records/users.ts'
import { csvText } from '../csv.ts'
import { redactQuery } from './request-access.ts'

const COLUMNS: Record<string, (request: RequestEntry) => unknown> = {
  time: ({ createdAt }) => new Date(createdAt).toISOString(),
  status: ({ status }) => status,
  method: ({ method }) => method,
  path: ({ path }) => path,
  operation: ({ operationId }) => operationId,
  duration_ms: ({ durationMs }) => durationMs,
  user: ({ user }) => user.fullName,
  api_key: ({ apiKey }) => apiKey.name,
  ip: ({ ip }) => ip,
  request_id: ({ requestId }) => requestId,
  repeats: ({ repeats }) => repeats,
}

export async function* requestsCsv(
  reader: User,
  batches: AsyncIterable<RequestEntry[]>,
): AsyncGenerator<string> {
  yield csvText([Object.keys(COLUMNS)])
  for await (const batch of batches) {
    const requests = batch.map((request) => redactQuery(reader, request))
    const rows = requests.map((request) => Object.values(COLUMNS).map((read) => read(request)))
    yield csvText(rows)
  }
}
