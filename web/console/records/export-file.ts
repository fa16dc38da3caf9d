/** Records with a file that is made in the background: how far it is, and whether it can be had. */
import { type OperationRow, operations } from '../../../generated/operations.ts'
import type { Resource } from '../../../generated/resources.ts'
import type { User } from '../../../records/users.ts'
import { type Html, html } from '../../shared/html.ts'
import { count } from '../format.ts'
import type { Visit } from '../page.ts'
import { plural } from './labels.ts'
import { convertQuery, filterName } from './list-query.ts'
import { type Item, maySee, resourceByOption } from './resources.ts'

export function isInProgress(
  { operations: { file } }: Resource,
  { completed_at, error }: Item,
): boolean {
  return file !== null && completed_at === null && error === null
}

export function isFileReady(
  { operations: { file } }: Resource,
  { completed_at, expires_at }: Item,
  now: Date,
): boolean {
  const isKept = typeof expires_at !== 'string' || now.getTime() < Date.parse(expires_at)
  return file !== null && typeof completed_at === 'string' && isKept
}

/** The file holds the records of a resource: who may not see those must not get them in this way. */
export function canViewExported(user: User, item: Record<string, unknown>): boolean {
  const held = resourceByOption(item.resource)
  return held === undefined || maySee(user, held)
}

/** How many records are in the file so far, of how many. */
export async function exportProgress(visit: Visit, item: Item): Promise<Html> {
  const done = typeof item.row_count === 'number' ? item.row_count : 0
  const held = resourceByOption(item.resource)
  const total =
    held && canViewExported(visit.user, item)
      ? await countMatching(visit, held, item.filters)
      : undefined
  const text = `${count(done)}${total === undefined ? '' : ` of ${count(total)}`} ${held ? plural(held).toLowerCase() : 'records'}`
  return html`<div class="making"><p>The file is being made: ${text} so far.</p><progress aria-label="Progress"${total !== undefined && total > 0 && html` value="${Math.min(done, total)}" max="${total}"`}></progress></div>`
}

async function countMatching(visit: Visit, held: Resource, filters: unknown): Promise<number> {
  const operation: OperationRow = operations[held.operations.list]
  const pairs = Object.entries((filters ?? {}) as Record<string, string>).map(
    ([name, value]): [string, string] => [filterName(name), value],
  )
  const { meta } = (await visit.call(held.operations.list, {
    query: { ...convertQuery(operation, pairs), 'page[size]': 1 },
  })) as {
    meta: { total: number }
  }
  return meta.total
}
