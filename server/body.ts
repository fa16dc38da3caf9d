import { type ContentType, parse as parseContentType } from 'content-type'
import getRawBody from 'raw-body'
import { assertNotTooComplex, MAX_VALUES } from '../operations/storable.ts'
import { MAX_UPLOAD_BYTES, newUploadTooLarge } from '../operations/upload-size.ts'
import type { Context } from './context.ts'

const MIB = 1024 ** 2
/** The longest refused body that is read to its end. */
const MAX_DROPPED_BYTES = 16 * MIB
const JSON_TYPE = 'application/json'
/** RFC 7396 */
const MERGE_PATCH_TYPE = 'application/merge-patch+json'

interface JsonBody {
  text: string
  value: unknown
  isMergePatch: boolean
}

/** Reads the JSON body, and stores its text for the request log. Throws, in this order: 400 without
 *  a body, 415, 413, and 400 for a body that is truncated, not UTF-8, too complex or not JSON. */
export async function readJson(ctx: Context, maxBytes = MIB): Promise<JsonBody> {
  if (!hasBody(ctx)) ctx.throw(400, 'A JSON body is required.')
  const accepted = ctx.method === 'PATCH' ? [JSON_TYPE, MERGE_PATCH_TYPE] : [JSON_TYPE]
  const isMergePatch = readMediaType(ctx, accepted) === MERGE_PATCH_TYPE

  const bytes = await readBytes(ctx, maxBytes)
  if (bytes.length === 0) ctx.throw(400, 'A JSON body is required.')
  const text = decode(ctx, bytes)
  ctx.state.requestText = text
  assertNotTooComplex(text, (maxBytes / MIB) * MAX_VALUES)
  return { text, value: parse(ctx, text), isMergePatch }
}

/** The media type of a file, before it is read. Throws 400 without a body, 415, and 413 for a file whose
 *  header says that it is too large. */
export function readFileType(ctx: Context, accepted: readonly string[]): string {
  if (!hasBody(ctx)) ctx.throw(400, 'A file is required.')
  const mediaType = readMediaType(ctx, accepted)
  if (Number(ctx.get('Content-Length') || 0) > MAX_UPLOAD_BYTES) throw newUploadTooLarge()
  return mediaType
}

function hasBody(ctx: Context): boolean {
  return ctx.get('Transfer-Encoding') !== '' || Number(ctx.get('Content-Length') || 0) > 0
}

/** The media type in lower case. Throws 415 for a media type, charset or encoding that the
 *  operation does not accept. */
function readMediaType(ctx: Context, accepted: readonly string[]): string {
  const refuse = (message: string): never =>
    ctx.throw(415, message, { headers: { Accept: accepted.join(', ') } })
  const required = accepted.join(' or ')
  const header = ctx.get('Content-Type')
  const type = header === '' ? undefined : readType(header)
  if (type === undefined)
    return refuse(
      `The Content-Type header is missing or cannot be read: the body must be ${required}.`,
    )
  const mediaType = type.type.toLowerCase()
  if (!accepted.includes(mediaType)) refuse(`The body must be ${required}, not ${type.type}.`)
  const charset = type.parameters.charset?.toLowerCase() ?? 'utf-8'
  if (charset !== 'utf-8' && charset !== 'utf8')
    refuse(`The body must be in UTF-8, not ${charset}.`)
  if (!/^(identity)?$/i.test(ctx.get('Content-Encoding')))
    refuse('The body must not be compressed.')
  return mediaType
}

function readType(header: string): ContentType | undefined {
  try {
    return parseContentType(header)
  } catch {
    return undefined
  }
}

async function readBytes(ctx: Context, maxBytes: number): Promise<Buffer> {
  try {
    return await getRawBody(ctx.req, {
      limit: maxBytes,
      length: ctx.get('Content-Length') || undefined,
    })
  } catch (error) {
    const type = (error as { type?: string }).type
    const isTooLarge = type === 'entity.too.large'
    // Reads the rest of the body and drops it: a client loses the response if the connection closes while
    // it still sends (RFC 9112, 9.6).
    if (isTooLarge && Number(ctx.get('Content-Length') || Number.NaN) <= MAX_DROPPED_BYTES)
      ctx.req.resume()
    // The rest is not read, so the connection cannot carry another request.
    else ctx.set('Connection', 'close')
    if (isTooLarge) ctx.throw(413, `The body is larger than ${maxBytes / MIB} MiB.`)
    ctx.throw(400, 'The request body was truncated.')
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
    // Only the end of the message: the rest may quote the body.
    const [position] =
      (error as Error).message.match(
        /(position \d+( \(line \d+ column \d+\))?|end of JSON input)$/i,
      ) ?? []
    const hint = position ? `: look at ${position.replace('end of JSON input', 'its end')}` : ''
    ctx.throw(400, `The body is not valid JSON${hint}.`)
  }
}
