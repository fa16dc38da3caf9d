/** Reads the body of a POST from a form. */
import type { Context } from 'koa'
import getRawBody from 'raw-body'
import { isStorable } from '../../operations/storable.ts'

export const MAX_FORM_BYTES = 1024 * 1024
/** For visitors who are not signed in. */
export const MAX_GUEST_FORM_BYTES = 16 * 1024
/** The time to read all fields grows with the square of their number: each `get` searches all
 *  fields. */
const MAX_FIELDS = 5_000

/** The fields of a POST; none for a GET. Throws 415 for a body that is not urlencoded, 413 for too
 *  many bytes or fields, and 400 for a field with the NUL character. */
export async function readForm(ctx: Context, maxBytes: number): Promise<URLSearchParams> {
  if (ctx.method !== 'POST') return new URLSearchParams()
  // `ctx.is` returns null for a request without a body, which counts as an empty form.
  if (ctx.is('urlencoded') === false)
    ctx.throw(415, 'A form must be application/x-www-form-urlencoded.')
  const text = await readText(ctx, maxBytes)
  if (text.split('&', MAX_FIELDS + 1).length > MAX_FIELDS) ctx.throw(413)
  const form = new URLSearchParams(text)
  if (![...form].flat().every(isStorable))
    ctx.throw(400, 'A field contains the NUL character. Remove it and send the form again.')
  return form
}

async function readText(ctx: Context, limit: number): Promise<string> {
  try {
    return await getRawBody(ctx.req, {
      limit,
      length: ctx.get('Content-Length') || undefined,
      encoding: 'utf8',
    })
  } catch (error) {
    if ((error as { type?: string }).type !== 'entity.too.large') throw error
    // The rest of the body is not read, so the connection cannot carry another request.
    ctx.set('Connection', 'close')
    return ctx.throw(413)
  }
}
