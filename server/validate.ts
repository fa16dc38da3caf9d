import type { Context } from 'koa'
import type { Operation } from '../generated/operations.ts'
import { type FieldErrors, InvalidInput } from '../records/invalid-input.ts'
import { convertParameter } from '../records/validate.ts'
import { isStorable, UNSTORABLE } from './body.ts'

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
    return equals === -1 ? [decode(part), ''] : [decode(part.slice(0, equals)), decode(part.slice(equals + 1))]
  } catch {
    return ctx.throw(400, 'The address holds a broken percent-encoding.')
  }
}
