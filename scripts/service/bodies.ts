/** Reads the body of a request by its media type. */
import type { IncomingMessage } from 'node:http'
import { StatusError } from '../../errors.ts'
import { parseJson } from '../model/json.ts'
import { isJson, type MediaType, type Operation } from '../model/operations.ts'
import { dereference } from '../model/references.ts'
import type { Source } from '../model/source.ts'
import { kindOf, readNested, type Values } from './parameters.ts'
import type { Problem, Validation } from './schemas.ts'

const MAX_BODY_BYTES = 10 * 1024 * 1024

interface ReadBody {
  /** JSON as a value, a form as an object, text as a string, and everything else as a Buffer. */
  body: unknown
  problems: Problem[]
}

/** Throws `StatusError` 413 and 415. */
export async function readBody(
  openapi: Source,
  validation: Validation,
  { bodies, isBodyRequired }: Operation,
  request: IncomingMessage,
): Promise<ReadBody> {
  if (bodies.length === 0) return { body: undefined, problems: [] }
  const bytes = await readBytes(request)
  const type = request.headers['content-type'] ?? ''
  if (bytes.length === 0 && type === '')
    return {
      body: undefined,
      problems: isBodyRequired ? [{ field: 'body', message: 'is required' }] : [],
    }
  const media = chooseMedia(bodies, type)
  if (!media) {
    const accepted = bodies.map(({ mediaType }) => mediaType).join(', ')
    throw new StatusError(415, `The Content-Type must be ${accepted}.`)
  }
  const { body, problems } = await parse({ openapi, validation }, media, type, bytes)
  return { body, problems: problems.map(withPrefix) }
}

function withPrefix({ field, message }: Problem): Problem {
  return { field: field === '' ? 'body' : `body.${field}`, message }
}

async function readBytes(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request) {
    length += chunk.length
    if (length > MAX_BODY_BYTES) throw new StatusError(413, 'The body is larger than 10 MiB.')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** The most specific declared media type that fits the Content-Type `type`. A declared type can be
 *  a range, such as `text/*`. */
export function chooseMedia(declared: readonly MediaType[], type: string): MediaType | undefined {
  const sent = bareType(type)
  return declared
    .filter(({ mediaType }) => {
      const pattern = bareType(mediaType)
        .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
        .replaceAll('*', '[^/]*')
      return new RegExp(`^${pattern}$`).test(sent)
    })
    .sort((a, b) => a.mediaType.split('*').length - b.mediaType.split('*').length)[0]
}

function bareType(type: string): string {
  return type.split(';')[0]?.trim().toLowerCase() ?? ''
}

interface Rules {
  openapi: Source
  validation: Validation
}

async function parse(
  { openapi, validation }: Rules,
  { schema }: MediaType,
  type: string,
  bytes: Buffer,
): Promise<ReadBody> {
  if (isJson(bareType(type))) {
    const value = parseJson(bytes.toString())
    if (value === undefined)
      return { body: undefined, problems: [{ field: '', message: 'must be JSON' }] }
    return { body: value, problems: validation.check(schema, 'request', value) }
  }
  if (/^(multipart\/form-data|application\/x-www-form-urlencoded)$/.test(bareType(type))) {
    const form = await new Response(new Uint8Array(bytes), { headers: { 'Content-Type': type } })
      .formData()
      .catch(() => undefined)
    if (!form) return { body: undefined, problems: [{ field: '', message: 'must be a form' }] }
    return checkForm({ openapi, validation }, schema, form)
  }
  if (!bareType(type).startsWith('text/')) return { body: bytes, problems: [] }
  const text = bytes.toString()
  return { body: text, problems: validation.check(schema, 'request', text) }
}

/** The schema validates the name of a file instead of its bytes. The handler gets the file. */
function checkForm(
  { openapi, validation }: Rules,
  schema: MediaType['schema'],
  form: FormData,
): ReadBody {
  const { properties = {} } = dereference({ [openapi.file]: openapi }, schema).value
  // A document can declare a property that is itself named `files[]`.
  const isDeclared = (name: string): boolean => Object.hasOwn(properties, name)
  const files = new Map<string, unknown[]>()
  const entries = [...form].map(([name, value]): [string, string] => {
    if (typeof value === 'string') return [name, value]
    const property = isDeclared(name) ? name : name.replace(/\[\]$/, '')
    files.set(property, [...(files.get(property) ?? []), value])
    return [name, value.name]
  })
  const names = new Set(
    entries.map(([name]) => (isDeclared(name) ? name : name.replace(/\[.*$/, ''))),
  )
  const values: Values = Object.fromEntries(
    [...names].map((name) => {
      const texts = entries.filter(([key]) => key === name).map(([, text]) => text)
      const [first] = texts
      // Without a text, the name has only entries such as `name[part]`.
      if (first === undefined) return [name, readNested(entries, name)]
      const property = { ...schema, value: properties[name] ?? {} }
      const kind = kindOf(openapi, property)
      if (kind === 'object') return [name, toJson(first)]
      return [name, kind === 'array' || texts.length > 1 ? texts : first]
    }),
  )
  const problems = validation.convertInPlace(schema, values)
  for (const [name, list] of files) values[name] = Array.isArray(values[name]) ? list : list[0]
  return { body: values, problems }
}

/** OpenAPI 3.0.3, Encoding Object: an object in a form is JSON. Text that is not JSON stays
 *  unchanged. */
function toJson(text: string): unknown {
  const value = parseJson(text)
  return value === undefined ? text : value
}
