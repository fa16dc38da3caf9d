import { type FieldErrors, InvalidInput } from '../errors.ts'
import { type OperationId, type OperationRow, operations } from '../generated/operations.ts'
import * as validators from '../generated/validators.js'
import type { ValidInput } from '../handlers/call.ts'
import { assertStorable, isStorable, UNSTORABLE } from '../operations/storable.ts'
import { validate } from '../operations/validate.ts'
import { type MergePatch, withoutRemovals } from '../records/merge-patch.ts'
import { convertParameter } from '../validation.ts'
import { readFileType, readJson } from './body.ts'
import type { Context } from './context.ts'

export interface ReadInput<Id extends OperationId> {
  /** Without the file of an operation that takes one. */
  input: ValidInput<Id>
  /** The media type of the file. */
  fileType: string | undefined
  /** The body as sent. */
  text: string
  mergePatch: MergePatch | undefined
}

/** Reads a request and validates it. Does not read a file. Throws what `readFileType`, `readJson`,
 *  `assertStorable`, `readQuery` and `validate` throw, in this order. */
export async function readInput<Id extends OperationId>(
  ctx: Context,
  id: Id,
): Promise<ReadInput<Id>> {
  const operation: OperationRow = operations[id]
  const { files, batch } = operation
  const fileType = files.length > 0 ? readFileType(ctx, files) : undefined
  const sent = validators.bodies[id] ? await readJson(ctx, batch?.maxBodyBytes) : undefined
  // The items of a batch are checked one by one.
  if (!batch) assertStorable(sent?.value)
  const mergePatch = sent?.isMergePatch ? (sent.value as MergePatch) : undefined
  const body = mergePatch ? withoutRemovals(mergePatch) : sent?.value
  const { query, spellings } = readQuery(ctx, operation)
  const { pathParameters: path } = ctx.state
  const input = validate(id, { path, query, spellings, headers: ctx.headers, body })
  return { input, fileType, text: sent?.text ?? '', mergePatch }
}

interface Query {
  /** Typed as in the contract. */
  query: Record<string, unknown>
  /** The names as the client wrote them, by their names in the contract. */
  spellings: Map<string, string>
}

/** A list parameter may be repeated, also as `name[]`. Throws 400 for broken percent-encoding, and
 *  InvalidInput for a repeated parameter that is no list, or for text that cannot be stored. */
function readQuery(ctx: Context, operation: OperationRow): Query {
  const values = new Map<string, unknown>()
  const spellings = new Map<string, string>()
  const errors: FieldErrors = Object.create(null)
  for (const part of ctx.querystring.split('&')) {
    if (part === '') continue
    const [encodedName, encoded] = splitPair(part)
    const spelling = decode(ctx, encodedName)
    const name = parameterName(operation, spelling)
    const parameter = operation.query[name]
    for (const one of parameter?.type === 'text_list' ? encoded.split(',') : [encoded]) {
      const text = decode(ctx, one)
      const earlier = values.get(name)
      const value = convertParameter(text, parameter)
      if (Array.isArray(earlier) && Array.isArray(value)) earlier.push(...value)
      else if (values.has(name)) errors[spelling] = ['must appear only once.']
      else values.set(name, value)
      if (!isStorable(spelling) || !isStorable(text)) errors[spelling.toWellFormed()] = [UNSTORABLE]
    }
    if (!spellings.has(name)) spellings.set(name, spelling)
  }
  if (Object.keys(errors).length > 0) throw new InvalidInput(errors)
  return { query: Object.fromEntries(values), spellings }
}

/** `filter[status][]` → `filter[status]`, if `filter[status]` is a list parameter. */
function parameterName({ query }: OperationRow, spelling: string): string {
  const base = spelling.replace(/\[\]$/, '')
  return /list$/.test(query[base]?.type ?? '') ? base : spelling
}

function splitPair(part: string): [name: string, value: string] {
  const equals = part.indexOf('=')
  return equals === -1 ? [part, ''] : [part.slice(0, equals), part.slice(equals + 1)]
}

function decode(ctx: Context, text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return ctx.throw(400, 'The URL has a broken percent-encoding.')
  }
}
