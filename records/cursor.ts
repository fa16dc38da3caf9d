/** The cursor of a list says which record was the last of a page. It is base64url text of a small
 *  JSON array. It is not signed: all queries are limited to the account, so a forged cursor shows no
 *  records of others. */
import { createHash } from 'node:crypto'
import { InvalidInput } from '../errors.ts'
import type { OperationRow } from '../generated/operations.ts'
import { parseJson } from '../scripts/model/json.ts'

/** Increase it with the format, so that the service refuses the cursors of earlier versions. */
const VERSION = 1
const MAX_PAGE = 2 ** 31 - 2

/** A column's value, as the database returns it. */
export type Scalar = string | number | boolean | null

export interface Position {
  /** The number of the page. */
  page: number
  /** The values of the last record, in the order of the sorts. */
  values: Scalar[]
  /** The ID of the last record. */
  id: string
}

/** A validated query of a list operation. */
export type PageQuery = {
  'page[number]': number
  'page[size]': number
  'page[after]'?: string
  sort?: string[]
  include?: string[]
} & { [filter: string]: unknown }

/** Where the page of the query begins. */
export interface PageStart {
  number: number
  /** The last record of the page before. Undefined: the query has no `page[after]`. */
  after: Position | undefined
}

/** Throws `InvalidInput` on `page[after]` for a cursor of another list. */
export function readPageStart(operation: OperationRow, query: PageQuery): PageStart {
  const cursor = query['page[after]']
  if (cursor === undefined) return { number: query['page[number]'], after: undefined }
  const after = parseCursor(cursor, operation, query)
  return { number: after.page + 1, after }
}

export function writeCursor(operation: OperationRow, query: PageQuery, position: Position): string {
  const { page, values, id } = position
  const parts = [VERSION, page, digestOf(operation, query), values, id]
  return Buffer.from(JSON.stringify(parts)).toString('base64url')
}

export function refuseCursor(): never {
  throw new InvalidInput({
    'page[after]': ['is not a cursor of this list. Start again without page[after].'],
  })
}

function parseCursor(cursor: string, operation: OperationRow, query: PageQuery): Position {
  const parts = parseJson(Buffer.from(cursor, 'base64url').toString())
  if (!Array.isArray(parts) || parts[0] !== VERSION) return refuseCursor()
  const [, page, digest, values, id] = parts
  if (digest !== digestOf(operation, query))
    throw new InvalidInput({
      'page[after]': [
        'belongs to another list, or to other filters or another sort. ' +
          'Repeat these as before, or start again without page[after].',
      ],
    })
  const isPosition =
    Number.isInteger(page) &&
    page >= 1 &&
    page <= MAX_PAGE &&
    Array.isArray(values) &&
    values.length === (query.sort?.length ?? 0) &&
    values.every(isScalar) &&
    typeof id === 'string'
  return isPosition ? { page, values, id } : refuseCursor()
}

function isScalar(value: unknown): value is Scalar {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value)
}

/** Identifies the list with its filters and its sort. */
function digestOf({ path }: OperationRow, query: PageQuery): string {
  const filters = Object.entries(query).filter(([name]) => name.startsWith('filter['))
  const list = JSON.stringify([path, filters.sort(), query.sort ?? []])
  return createHash('sha256').update(list).digest('base64url').slice(0, 11)
}
