/** The list of API requests as a CSV file. */
import { stringify } from 'csv-stringify/sync'
import type { RequestEntry } from '../../../records/request-log.ts'
import type { User } from '../../../records/users.ts'
import { redactQuery } from './request-access.ts'

const COLUMNS = [
  'time',
  'status',
  'method',
  'path',
  'operation',
  'duration_ms',
  'user',
  'api_key',
  'ip',
  'request_id',
  'repeats',
]

/** RFC 4180, like exports. Formulas are escaped, because a spreadsheet would run one in a path. */
const OPTIONS = {
  record_delimiter: '\r\n',
  quote_record_delimiter: true,
  quoted_match: /^$/,
  escape_formulas: true,
}

export async function* requestsCsv(
  reader: User,
  batches: AsyncIterable<RequestEntry[]>,
): AsyncGenerator<string> {
  yield stringify([COLUMNS], OPTIONS)
  for await (const batch of batches)
    yield stringify(
      batch.map((request) => csvRow(redactQuery(reader, request))),
      OPTIONS,
    )
}

function csvRow(request: RequestEntry): unknown[] {
  const { createdAt, status, method, path, operationId, durationMs, user, apiKey, ip } = request
  return [
    new Date(createdAt).toISOString(),
    status,
    method,
    path,
    operationId,
    durationMs,
    user.fullName,
    apiKey.name,
    ip,
    request.requestId,
    request.repeats,
  ]
}
