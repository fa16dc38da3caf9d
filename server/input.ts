import { type FieldErrors, InvalidInput } from '../errors.ts'
import { type OperationId, type OperationRow, operations } from '../generated/operations.ts'
import * as validators from '../generated/validators.js'
import type { ValidInput } from '../handlers/call.ts'
import { validate } from '../operations/execute.ts'
import { isStorable, UNSTORABLE } from '../operations/storable.ts'
import { convertParameter } from '../validation.ts'
import { readJson } from './body.ts'
import type { Context } from './context.ts'

/** Reads a request and validates it. `text` is the body as sent. Throws 415, 413 or 400 for the body as
 *  a whole, then what `readQuery` and `validate` throw. */
export async function readInput<Id extends OperationId>(
  ctx: Context,
  id: Id,
): Promise<{ input: ValidInput<Id>; text: string }> {
  const body = validators.bodies[id] ? await readJson(ctx) : undefined
  const query = readQuery(ctx, operations[id])
  const { pathParameters: path } = ctx.state
  const input = validate(id, { path, query, headers: ctx.headers, body: body?.value })
  return { input, text: body?.text ?? '' }
}

/** The query as the contract types it. Throws 400 for broken percent-encoding and InvalidInput for a
 *  repeated or unstorable parameter. */
export function readQuery(ctx: Context, operation: OperationRow): Record<string, unknown> {
  if (ctx.querystring === '') return {}
  const query: Record<string, unknown> = {}
  const errors: FieldErrors = Object.create(null)
  for (const part of ctx.querystring.split('&')) {
    if (part === '') continue
    const [name, value] = decodePair(ctx, part)
    if (Object.hasOwn(query, name)) errors[name] = ['must appear only once.']
    else if (!isStorable(name) || !isStorable(value)) errors[name.toWellFormed()] = [UNSTORABLE]
    // Not an assignment, because "__proto__" must become an ordinary name.
    else
      Object.defineProperty(query, name, {
        value: convertParameter(value, operation.query[name]?.type),
        enumerable: true,
        writable: true,
        configurable: true,
      })
  }
  if (Object.keys(errors).length > 0) throw new InvalidInput(errors)
  return query
}

function decodePair(ctx: Context, part: string): [string, string] {
  const equals = part.indexOf('=')
  const decode = (text: string): string => decodeURIComponent(text.replaceAll('+', ' '))
  try {
    return equals === -1
      ? [decode(part), '']
      : [decode(part.slice(0, equals)), decode(part.slice(equals + 1))]
  } catch {
    return ctx.throw(400, 'The URL has a broken percent-encoding.')
  }
}
