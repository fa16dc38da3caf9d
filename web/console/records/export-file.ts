/** The file of an export or import: its progress, and who can download it. */
import { type OperationRow, operations } from '../../../generated/operations.ts'
import type { Resource } from '../../../generated/resources.ts'
import type { User } from '../../../records/users.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { absoluteTime, count, counted } from '../format.ts'
import type { Visit } from '../page.ts'
import { facts, note } from '../ui.ts'
import { columnLabel, plural } from './labels.ts'
import { filterText } from './list-filters.ts'
import { convertQuery, filterParameter } from './list-query.ts'
import { type KnownRecords, listRecords } from './references.ts'
import { canViewResource, fieldLabel, type Item, resourceByOption } from './resources.ts'

/** How often pages reload while an export is in progress. */
export const EXPORT_REFRESH_SECONDS = 2

export function isExportRunning(
  { operations: { file } }: Resource,
  { completed_at, error }: Item,
): boolean {
  return file !== null && completed_at === null && error === null
}

export function isFileReady(
  { operations: { file } }: Resource,
  { expires_at }: Item,
  now: Date,
): boolean {
  const isKept = typeof expires_at === 'string' && now.getTime() < Date.parse(expires_at)
  return file !== null && isKept
}

/** False only for an export of records that the console hides from the user. */
export function canViewExported(user: User, item: Record<string, unknown>): boolean {
  const exported = resourceByOption(item.resource)
  return exported === undefined || canViewResource(user, exported)
}

export async function exportProgress(visit: Visit, item: Item): Promise<Html> {
  if ('refused_count' in item) return importProgress(item)
  const done = typeof item.row_count === 'number' ? item.row_count : 0
  const exported = resourceByOption(item.resource)
  const total =
    exported && canViewExported(visit.user, item)
      ? await countMatching(visit, exported, item)
      : undefined
  const ofTotal = total === undefined ? '' : ` of ${count(total)}`
  const noun = exported ? plural(exported).toLowerCase() : 'records'
  const value =
    total !== undefined && total > 0 && html` value="${Math.min(done, total)}" max="${total}"`
  return html`<div class="making">
    <p>Export in progress: ${count(done)}${ofTotal} ${noun} so far.</p>
    <progress aria-label="Progress"${value}></progress>
  </div>`
}

function importProgress(item: Item): Html {
  const counts = [item.created_count, item.updated_count, item.unchanged_count, item.refused_count]
  const done = counts.reduce((sum: number, each) => sum + Number(each), 0)
  const total = typeof item.row_count === 'number' ? item.row_count : undefined
  const value = total !== undefined && total > 0 && html` value="${done}" max="${total}"`
  return html`<div class="making">
    <p>Import in progress: ${count(done)}${total !== undefined && ` of ${count(total)}`} rows so far.</p>
    <progress aria-label="Progress"${value}></progress>
  </div>`
}

/** What became of an export or import, and what to do next. Empty for other records. */
export function fileOutcome(resource: Resource, item: Item, now: Date): Content {
  if (resource.operations.file === null) return false
  if (item.error !== null) return note('bad', `Failed: ${item.error}`)
  if ('refused_count' in item) return importOutcome(item)
  const rows = counted(Number(item.row_count), 'row')
  const until = absoluteTime(Date.parse(String(item.expires_at)))
  return isFileReady(resource, item, now)
    ? note('ok', `${rows}. Download the file before ${until}.`)
    : note('quiet', `${rows}. The file was deleted. Create a new export to get the records again.`)
}

function importOutcome({ dry_run, refused_count, ...item }: Item): Html {
  const isDryRun = dry_run === true
  const refused = Number(refused_count)
  const counts = [
    `${count(Number(item.created_count))} created`,
    `${count(Number(item.updated_count))} updated`,
    `${count(Number(item.unchanged_count))} unchanged`,
    `${count(refused)} refused`,
  ]
  const rows = `${counted(Number(item.row_count), 'row')}: ${counts.join(', ')}.`
  const next = [
    refused > 0 && ' Download the refused rows, correct them, and import them.',
    isDryRun && ' To make these changes, import the rows.',
  ]
  return note(refused > 0 ? 'warn' : 'ok', [isDryRun && 'Nothing was changed yet. ', rows, next])
}

/** The filters of an export. Empty for other records. */
export function filtersOf({ filters }: Item): Record<string, string> {
  return (filters ?? {}) as Record<string, string>
}

/** The filters or columns of an export in words. Undefined for other fields. */
export function exportedPart(name: string, item: Item, known: KnownRecords): Content {
  const exported = resourceByOption(item.resource)
  if (!exported) return undefined
  if (name === 'columns') {
    const columns = item.columns as string[]
    return columns.length > 0 ? columns.map(columnLabel).join(', ') : 'All columns'
  }
  if (name !== 'filters') return undefined
  const filters = Object.entries(filtersOf(item))
  if (filters.length === 0) return 'None: all records'
  return facts(
    filters.map(([filter, text]) => {
      const schema = exported.filters.find((one) => one.name === filter)?.schema ?? {}
      const values = schema.items?.enum ? text.split(',') : [text]
      const shown = values.map((value) => filterText(filter, schema, value, known))
      return [fieldLabel(filter), shown.join(', ')]
    }),
  )
}

async function countMatching(visit: Visit, resource: Resource, item: Item): Promise<number> {
  const operation: OperationRow = operations[resource.operations.list]
  const pairs = Object.entries(filtersOf(item)).map(([name, value]): [string, string] => [
    filterParameter(name),
    value,
  ])
  const query = { ...convertQuery(operation, pairs), 'page[size]': 1 }
  return (await listRecords(visit, resource, query)).meta.total
}
