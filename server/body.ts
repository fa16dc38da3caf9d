import { type ContentType, parse as parseContentType } from 'content-type'
import type { Context } from 'koa'
import getRawBody from 'raw-body'
import { type FieldErrors, InvalidInput } from '../errors.ts'

const MAX_BODY_BYTES = 1024 * 1024
const MAX_DEPTH = 32
/** Fields and entries of a body. More would keep the validators busy for longer than a request is worth. */
const MAX_VALUES = 10_000

/** The request's JSON body and its text, which is also kept for the request log. Throws 415, 413, 400 in this order, or InvalidInput for text that cannot be stored. */
export async function readJson(ctx: Context): Promise<{ text: string; value: unknown }> {
  const hasBody = ctx.get('Transfer-Encoding') !== '' || Number(ctx.get('Content-Length') || 0) > 0
  if (!hasBody) ctx.throw(400, 'A JSON body is required.')
  assertJson(ctx)

  const bytes = await readBytes(ctx)
  if (bytes.length === 0) ctx.throw(400, 'A JSON body is required.')
  const text = decode(ctx, bytes)
  ctx.state.requestText = text
  const value = parse(ctx, text)
  assertStorable(ctx, value)
  return { text, value }
}

/** Throws 400 for what is too deep or too large, and InvalidInput for text that cannot be stored. */
export function assertStorable(ctx: Context, value: unknown): void {
  const unstorable = inspect(ctx, value)
  if (Object.keys(unstorable).length > 0) throw new InvalidInput(unstorable)
}

function assertJson(ctx: Context): void {
  const refuse = (message: string): never =>
    ctx.throw(415, message, { headers: { Accept: 'application/json' } })
  const header = ctx.get('Content-Type')
  const type = header === '' ? undefined : readType(header)
  if (type === undefined)
    refuse(
      'The Content-Type header is missing or cannot be read: the body must be application/json.',
    )
  if (type?.type.toLowerCase() !== 'application/json')
    refuse(`The body must be application/json, not ${type?.type}.`)
  const charset = type?.parameters.charset?.toLowerCase() ?? 'utf-8'
  if (charset !== 'utf-8' && charset !== 'utf8')
    refuse(`The body must be in UTF-8, not ${charset}.`)
  if (!/^(identity)?$/i.test(ctx.get('Content-Encoding')))
    refuse('The body must not be compressed.')
}

function readType(header: string): ContentType | undefined {
  try {
    return parseContentType(header)
  } catch {
    return undefined
  }
}

async function readBytes(ctx: Context): Promise<Buffer> {
  try {
    return await getRawBody(ctx.req, {
      limit: MAX_BODY_BYTES,
      length: ctx.get('Content-Length') || undefined,
    })
  } catch (error) {
    const type = (error as { type?: string }).type
    // The rest of the body is not read, so the connection cannot carry another request.
    ctx.set('Connection', 'close')
    if (type === 'entity.too.large') ctx.throw(413, 'The body is larger than 1 MiB.')
    ctx.throw(400, 'The body was not sent as a whole.')
  }
}

function decode(ctx: Context, bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    ctx.throw(400, 'The body is not valid UTF-8.')
  }
}

function parse(ctx: Context, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const where = (error as Error).message.match(
      /position \d+ \(line \d+ column \d+\)|position \d+|end of JSON input/i,
    )?.[0]
    ctx.throw(
      400,
      `The body is not valid JSON${where ? `: look at ${where.replace('end of JSON input', 'its end')}` : ''}.`,
    )
  }
}

/** PostgreSQL cannot store NUL in text, and half of a surrogate pair has no UTF-8. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

export const UNSTORABLE = 'must not contain the NUL character or half of a surrogate pair.'

/** Walks the whole body. Throws 400 when it is too deep or too large, and returns the fields whose text cannot be stored. */
function inspect(ctx: Context, body: unknown): FieldErrors {
  const unstorable: FieldErrors = Object.create(null)
  let values = 0
  const visit = (value: unknown, path: string, depth: number): void => {
    if (++values > MAX_VALUES)
      ctx.throw(
        400,
        `The body has more than ${MAX_VALUES.toLocaleString('en')} fields and entries.`,
      )
    if (typeof value === 'string' && !isStorable(value)) unstorable[path] = [UNSTORABLE]
    if (typeof value !== 'object' || value === null) return
    if (depth > MAX_DEPTH) ctx.throw(400, `The body is nested deeper than ${MAX_DEPTH} levels.`)
    for (const [key, child] of Object.entries(value)) {
      const at = path === '' ? key : `${path}.${key}`
      if (isStorable(key)) visit(child, at, depth + 1)
      else
        unstorable[at.toWellFormed().replaceAll('\0', '\uFFFD')] = [`has a name that ${UNSTORABLE}`]
    }
  }
  visit(body, '', 1)
  return unstorable
}
