/** Oracle: only a JSON body is accepted. */
import type { Operation } from '../../model/operations.ts'
import { readBatchWords } from '../../words/batches.ts'
import { readMergePatchType } from '../../words/records.ts'
import { assertStatus } from '../contract-broken.ts'
import { MAX_BODY_BYTES } from '../request.ts'
import { assertSameStatus, type Check, newRequest, type Run } from '../run.ts'

export async function* bodyChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const path = await run.records.sharedPath(operation)
  const json = { 'Content-Type': 'application/json' }
  const maxBytes = readBatchWords(operation)?.max_body_bytes ?? MAX_BODY_BYTES
  const valid = JSON.stringify(await run.records.validBody(operation))
  // Only updates take a merge patch.
  const patchType = operation.method === 'patch' ? undefined : readMergePatchType(run.contract)
  for (const [what, body, headers, expected] of [
    ['malformed JSON', '{"a": ', json, 400],
    ['no body', '', json, 400],
    ['text/plain', valid, { 'Content-Type': 'text/plain' }, 415],
    ...(patchType ? [[patchType, valid, { 'Content-Type': patchType }, 415] as const] : []),
    ['text/json', valid, { 'Content-Type': 'text/json' }, 415],
    ['another charset', valid, { 'Content-Type': 'application/json; charset=utf-16' }, 415],
    ['an oversized body', 'x'.repeat(maxBytes + 1), json, 413],
  ] as const)
    yield {
      what,
      async perform() {
        const probe = { ...newRequest(run, operation, path), body, headers }
        const { status } = await run.send(operation, probe)
        assertStatus(probe, status, { check: 'negative_data_rejection', expected, what })
      },
    }
  const usual = { ...newRequest(run, operation, path), body: '{"not_a_field":1}', headers: json }
  const probe = { ...usual, body: usual.body.padEnd(maxBytes) }
  const what = 'the largest body'
  yield {
    what,
    perform: () =>
      assertSameStatus(
        run,
        operation,
        { usual, probe },
        { check: 'negative_data_rejection', what },
      ),
  }
}
