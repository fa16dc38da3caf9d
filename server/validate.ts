import type { Context } from 'koa'
import { type FieldErrors, InvalidInput } from '../errors.ts'
import type { Operation, OperationId } from '../generated/operations.ts'
import * as validators from '../generated/validators.js'
import { assertValid, convertParameter } from '../operations/validation.ts'
import { isStorable, readJson, UNSTORABLE } from './body.ts'

/** Puts `path`, `query` and `input` of the request into `ctx.state`, valid and with their defaults, and returns the text of the body. Throws, in
 *  this order, what is wrong with the body as such (415, 413, 400), with the query, the headers and the body (422), with the path (404). */
export async function readInput(
  ctx: Context,
  id: OperationId,
  operation: Operation,
): Promise<string> {
  const bodyValidator = validators.bodies[id]
  const body = bodyValidator ? await readJson(ctx) : undefined
  const { path, query, headers } = validators.params[id]
  const values = readQuery(ctx, operation)
  assertValid(query, values, ([name = '']) => name)
  if (headers)
    assertValid(
      headers.validator,
      ctx.headers,
      ([name]) => headers.names.find((header) => header.toLowerCase() === name) ?? '',
    )
  if (bodyValidator) assertValid(bodyValidator, body?.value)
  // A path that cannot name a record is a record that does not exist.
  if (!path(ctx.state.params)) ctx.throw(404, 'There is no such record.')
  Object.assign(ctx.state, { path: ctx.state.params, query: values, input: body?.value })
  return body?.text ?? ''
}

/** The query as the contract types it. Throws 400 for broken percent-encoding and InvalidInput for a repeated or unstorable parameter. */
export function readQuery(ctx: Context, operation: Operation): Record<string, unknown> {
  if (ctx.querystring === '') return {}
  const query: Record<string, unknown> = {}
  const errors: FieldErrors = Object.create(null)
  for (const part of ctx.querystring.split('&')) {
    if (part === '') continue
    const [name, value] = decodePair(ctx, part)
    if (Object.hasOwn(query, name)) errors[name] = ['must be given once.']
    else if (!isStorable(name) || !isStorable(value)) errors[name.toWellFormed()] = [UNSTORABLE]
    // No plain assignment: "__proto__" must become a name like any other.
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
    return ctx.throw(400, 'The address holds a broken percent-encoding.')
  }
}
