/** Checks of the largest record: `x-max-record-bytes` of openapi.yaml. */
import type { Operation } from '../../model/operations.ts'
import type { Schema } from '../../model/schema.ts'
import { requestSchema } from '../../words/records.ts'
import { readMaxRecordBytes } from '../../words/refusals.ts'
import { findOperation } from '../record-kinds.ts'
import { type Check, newRequest, preparePath, type Run } from '../run.ts'
import { jsonBytes } from '../values/limit-values.ts'
import { isValid } from '../values/validity.ts'
import { assertAccepted, assertRefused, assertUpdateRefused } from './refused.ts'

/** Takes more bytes as JSON than any other character. */
const ESCAPED_CHARACTER = '\u0001'
const ESCAPED_BYTES = '\\u0001'.length
/** Has two bytes, so that a service that counts characters accepts too large a record. */
const WIDE_CHARACTER = 'é'
const MAX_WIDE = 100
/** Another field of the request cannot be shortened by this many bytes. */
const LARGE_EXCESS = 2000

/** The operation writes records of the largest size, and refuses larger ones. */
export function* recordSizeChecks(run: Run, operation: Operation): Generator<Check> {
  const maxBytes = readMaxRecordBytes(run.contract)
  if (maxBytes === Number.POSITIVE_INFINITY) return
  const field = findLargeField(requestSchema(run.contract, operation), maxBytes)
  if (field === undefined) return
  yield {
    what: `a record of ${maxBytes} bytes, and larger ones`,
    async perform() {
      const path = await preparePath(run, operation)
      const fixed = await run.records.validBody(operation)
      const send = (bytes: number) =>
        newRequest(run, operation, path, { body: { ...fixed, [field]: textOf(bytes) } })
      const { json } = await assertAccepted(run, operation, send(1), 'a small record')
      const most = maxBytes - jsonBytes(json) + 1
      await assertAccepted(run, operation, send(most), `a record of ${maxBytes} bytes`)
      const why = `a record has at most ${maxBytes} bytes`
      const get = findOperation(run.contract, 'get', operation.path)
      for (const [excess, fields] of [
        [1, Object.keys({ ...fixed, [field]: '' })],
        [LARGE_EXCESS, [field]],
      ] as const) {
        const [request, expected] = [send(most + excess), { fields: [...fields], why }]
        if (operation.method === 'patch' && get)
          await assertUpdateRefused(run, { update: operation, get }, request, expected)
        else await assertRefused(run, operation, request, expected)
      }
      run.tested('openapi.yaml', 'x-max-record-bytes')
    },
  }
}

/** The name of a field that can have text of any size up to `bytes` and a large excess. */
export function findLargeField({ properties = {} }: Schema, bytes: number): string | undefined {
  const canHave = ({ type, format, ...schema }: Schema): boolean =>
    type === 'string' &&
    format === undefined &&
    isValid({ type, ...schema }, textOf(bytes + LARGE_EXCESS))
  const found = Object.entries(properties).find(([, schema]) => canHave(schema))
  return found?.[0]
}

/** Text that has `bytes` bytes as JSON, without the quotation marks. */
function textOf(bytes: number): string {
  const wide = WIDE_CHARACTER.repeat(Math.min(MAX_WIDE, Math.floor(bytes / 2)))
  const rest = bytes - Buffer.byteLength(wide)
  const escaped = ESCAPED_CHARACTER.repeat(rest / ESCAPED_BYTES)
  return wide + escaped + 'x'.repeat(rest % ESCAPED_BYTES)
}
