/** What earlier releases stored otherwise than this version. The upgrade leaves it as it is. */
import type { Rows } from './rows.ts'

type Row = Rows[string][number]

/** By release and table: turns a row of this version into the row of the release. */
const DIFFERENCES: Record<string, Record<string, (row: Row) => Row>> = {
  '1.2.0': {
    events: (row) => ({
      ...row,
      actor_type: null,
      api_key_id: null,
      changes: null,
      ip: null,
      user_id: null,
    }),
    // Only participants had an external_id.
    export_chunks: ({ bytes, ...row }) => ({
      ...row,
      bytes: String(bytes).replace('external_id,', '').replace(',,<time>', ',<time>'),
    }),
    exports: ({ byte_size, ...row }) => ({
      ...row,
      byte_size: Number(byte_size) - 'external_id,'.length - ','.length,
    }),
    // The fingerprint of the bytes of the request.
    idempotency_keys: (row) => ({
      ...row,
      fingerprint: 'lYCk-9G_45vtAOJkmJ_Wq_hvX5qoSqomxSO9-dv2fPw',
    }),
    request_log: ({ response_body, ...row }) => ({
      ...row,
      request_headers: null,
      response_body:
        response_body === null || String(response_body).includes('"full_name"')
          ? response_body
          : String(response_body).replace('"external_id":null,', '').replace('"columns":[],', ''),
    }),
  },
}

/** The rows of this version as the release stored them. */
export function rowsOf(release: string, rows: Rows): Rows {
  const differences = Object.entries(DIFFERENCES[release] ?? {})
  const changed = differences.map(([table, rowOf]) => [table, rows[table]?.map(rowOf)])
  return { ...rows, ...Object.fromEntries(changed) }
}
