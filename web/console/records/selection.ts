/** Acts on the selected rows of a list: sets their status, deletes them, or exports them. Each action
 *  has a page that names the records before it changes them. */
import { InvalidInput } from '../../../errors.ts'
import { type OperationId, type OperationRow, operations } from '../../../generated/operations.ts'
import type { Resource } from '../../../generated/resources.ts'
import { isRefusal } from '../../../operations/item-steps.ts'
import type { User } from '../../../records/users.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { choiceField, formPage } from '../form-fields.ts'
import { counted } from '../format.ts'
import { type ConsolePage, type PageResult, redirect, type Visit } from '../page.ts'
import { refererPath, toConsolePath } from '../return-path.ts'
import { buttonLink, card, empty, hiddenInput, note, shortId, table } from '../ui.ts'
import { statePill } from './cells.ts'
import { deletionText, HIDDEN_RECORDS } from './delete-record.ts'
import { canViewExported } from './export-file.ts'
import { errorText, noun, option, plural } from './labels.ts'
import { convertQuery, filterParameter, normalizeQuery, queryValue } from './list-query.ts'
import { listRecords, loadReferences, recordTitle } from './references.ts'
import {
  canExport,
  canPerform,
  type Item,
  recordCrumbs,
  recordLink,
  resourcePath,
} from './resources.ts'

export const SELECTION_FORM = 'selection'
const ID_FILTER = filterParameter('id')
const MAX_SELECTED = 100

/** The list of selected rows is a list by ID. */
export function canSelect(user: User, resource: Resource): boolean {
  const actions = [canSetStatus, canDelete, canExport]
  return canFilterById(resource) && actions.some((can) => can(user, resource))
}

export function canSetStatus(user: User, resource: Resource): boolean {
  const isPossible = statusOf(resource) !== undefined && batchOf(resource) !== undefined
  return isPossible && canFilterById(resource) && canPerform(user, resource, 'update')
}

export function canDelete(user: User, resource: Resource): boolean {
  return canFilterById(resource) && canPerform(user, resource, 'delete')
}

function canFilterById({ filters }: Resource): boolean {
  return filters.some(({ name }) => name === 'id')
}

function statusOf({ change }: Resource): Schema | undefined {
  return change?.properties?.status
}

/** The operation that updates many records. */
function batchOf({ operations: { create } }: Resource): OperationId | undefined {
  const rows: [string, OperationRow][] = Object.entries(operations)
  return rows.find(([, { batch }]) => batch && batch.create === create)?.[0] as OperationId
}

export function selectionBox(id: string, title: string): Html {
  return html`<input
    type="checkbox"
    form="${SELECTION_FORM}"
    name="${ID_FILTER}"
    value="${id}"
    aria-label="Select ${title}"
  >`
}

/** The buttons for the selected rows. Hidden until a row is selected. */
export function selectionBar(user: User, resource: Resource): Html {
  const path = `/console${resourcePath(resource)}`
  const action = (name: string, text: string, style = ''): Html =>
    html`<button class="button ${style}" formaction="${path}/${name}">${text}</button>`
  return html`<form class="selection actions" id="${SELECTION_FORM}" method="get" action="${path}">
    <span id="selected-count" role="status">Selected</span>
    ${canSetStatus(user, resource) && action('set-status', 'Set status')}
    ${canExport(user, resource) && action('export', 'Export')}
    ${canDelete(user, resource) && action('delete', 'Delete', 'danger')}
  </form>`
}

interface Selection {
  /** Also those of records that no longer exist. */
  ids: string[]
  items: Item[]
  titles: Map<string, string>
  /** The list that the user came from, below /console. */
  back: string
}

async function loadSelection(visit: Visit, resource: Resource): Promise<Selection> {
  const { ctx, form, query } = visit
  const isPost = ctx.method === 'POST'
  const text = queryValue(normalizeQuery(resource, isPost ? form : query), ID_FILTER)
  const ids = text === '' ? [] : [...new Set(text.toLowerCase().split(','))]
  const path = isPost ? toConsolePath(form.get('back')) : refererPath(ctx)
  const back = path.split('?')[0] === resourcePath(resource) ? path : resourcePath(resource)
  if (ids.length === 0) return { ids, items: [], titles: new Map(), back }
  const operation = operations[resource.operations.list]
  const { data } = await listRecords(visit, resource, {
    ...convertQuery(operation, [[ID_FILTER, ids.join(',')]]),
    'page[size]': MAX_SELECTED,
  })
  const known = await loadReferences(visit, data)
  const titles = new Map(data.map((item) => [item.id, recordTitle(resource, item, known)]))
  return { ids, items: data, titles, back }
}

interface SelectionForm {
  title: string
  action: string
  submit: string
  style?: 'danger'
  fields: Content
  problem?: string
}

function selectionPage(
  resource: Resource,
  { items, titles, back }: Selection,
  { title, action, submit, style, fields, problem }: SelectionForm,
): ConsolePage {
  const crumbs = recordCrumbs(resource)
  if (items.length === 0) {
    const text = `Select ${plural(resource).toLowerCase()} in the list first.`
    const link = buttonLink(back, 'Back to the list')
    return { title, crumbs, isNarrow: true, body: card('', empty('Nothing selected', text, link)) }
  }
  const ids = items.map(({ id }) => id).join(',')
  const status = resource.record.properties?.status
  const rows = items.map((item) => ({
    cells: [titleLink(resource, item.id, titles), status && statePill(item.status)],
  }))
  return formPage(
    { title, crumbs },
    { to: `${resourcePath(resource)}/${action}`, submit, style, cancel: back, problem },
    [
      hiddenInput(ID_FILTER, ids),
      hiddenInput('back', `/console${back}`),
      fields,
      table(plural(resource), [{ label: 'Selected', isText: true }, 'Status'], rows),
    ],
  )
}

function titleLink(resource: Resource, id: string, titles: Selection['titles']): Html {
  return recordLink(resource, id, titles.get(id) ?? shortId(id), 'clip')
}

const nounFor = (resource: Resource, count: number): string =>
  counted(count, noun(resource), plural(resource).toLowerCase())

export async function statusPage(visit: Visit, resource: Resource): Promise<ConsolePage> {
  return statusForm(resource, await loadSelection(visit, resource))
}

function statusForm(resource: Resource, selection: Selection, problem?: string): ConsolePage {
  const status = statusOf(resource) ?? {}
  const hints = status['x-enum-descriptions'] ?? []
  const possible = nextStatusesOf(resource, selection.items)
  const choices = (status.enum ?? [])
    .map((value, index) => ({ value: String(value), label: option(value), hint: hints[index] }))
    .filter(({ value }) => possible === undefined || possible.has(value))
  const count = nounFor(resource, selection.items.length)
  return selectionPage(resource, selection, {
    title: `Set the status of ${count}`,
    action: 'set-status',
    submit: `Set status of ${count}`,
    fields:
      possible?.size === 0
        ? note('warn', 'The status of all selected records is final.')
        : choiceField({ name: 'status', legend: 'Status', choices, values: [] }),
    problem,
  })
}

/** Those that can follow the status of at least one of the records. Undefined if any can follow. */
function nextStatusesOf({ nextStatuses }: Resource, items: Item[]): Set<string> | undefined {
  return nextStatuses === null
    ? undefined
    : new Set(items.flatMap(({ status }) => nextStatuses[String(status)] ?? []))
}

/** Sets the status in one transaction. A record that refuses the status does not stop the others. */
export async function setStatus(visit: Visit, resource: Resource): Promise<PageResult> {
  const selection = await loadSelection(visit, resource)
  const status = visit.form.get('status')
  const batch = batchOf(resource)
  if (!batch || selection.ids.length === 0) return statusForm(resource, selection)
  if (!status) return statusForm(resource, selection, 'Choose a status.')
  const items = selection.ids.map((id) => ({ action: 'update', id, data: { status } }))
  const { results } = (await visit.call(batch, { body: { items } })) as {
    results: { message?: string; errors?: InvalidInput['errors'] }[]
  }
  const refusals = results.map(({ message, errors }) => (errors ? errorText({ errors }) : message))
  return report(resource, selection, refusals, `set to ${option(status)}`)
}

export async function deleteSelectedPage(visit: Visit, resource: Resource): Promise<ConsolePage> {
  const selection = await loadSelection(visit, resource)
  const count = nounFor(resource, selection.items.length)
  return selectionPage(resource, selection, {
    title: `Delete ${count}?`,
    action: 'delete',
    submit: `Delete ${count}`,
    style: 'danger',
    fields: html`<p>${deletionText(resource)}</p>`,
  })
}

/** Deletes each record in its own transaction, like the API, which has no batch of deletes. After an
 *  unexpected error it stops, and says what it has not tried. */
export async function deleteSelected(visit: Visit, resource: Resource): Promise<PageResult> {
  const selection = await loadSelection(visit, resource)
  if (selection.ids.length === 0) return deleteSelectedPage(visit, resource)
  const items = new Map(selection.items.map((item) => [item.id, item]))
  const refusals: (string | undefined)[] = []
  let hasFailed = false
  for (const id of selection.ids) {
    const item = items.get(id) ?? { id }
    if (hasFailed) refusals.push('Not tried.')
    else
      refusals.push(
        await deleteOne(visit, resource, item).catch((error: unknown) => {
          visit.log.error({ err: error, recordId: id }, 'A selected record was not deleted')
          hasFailed = true
          return 'May have been deleted: the service had an error. Look at the record.'
        }),
      )
  }
  return report(resource, selection, refusals, 'deleted')
}

/** Returns the reason if the record is not deleted. */
async function deleteOne(
  visit: Visit,
  { operations: { delete: operation }, idParameter }: Resource,
  item: Item,
): Promise<string | undefined> {
  if (operation === null) return visit.ctx.throw(404)
  if (!canViewExported(visit.user, item)) return HIDDEN_RECORDS
  try {
    await visit.call(operation, { path: { [idParameter]: item.id } })
    return undefined
  } catch (error) {
    if (!isRefusal(error)) throw error
    if (error instanceof InvalidInput) return errorText(error)
    return error.status === 404 ? 'Already deleted.' : error.message
  }
}

/** Returns to the list if all records changed. Otherwise says which did not, and why. `refusals` are
 *  in the order of the IDs. */
function report(
  resource: Resource,
  { ids, titles, back }: Selection,
  refusals: (string | undefined)[],
  done: string,
): PageResult {
  const refused = ids.flatMap((id, index) => {
    const reason = refusals[index]
    return reason === undefined ? [] : [{ cells: [titleLink(resource, id, titles), reason] }]
  })
  if (refused.length === 0) return redirect(back, `${nounFor(resource, ids.length)} ${done}.`)
  const columns = [{ label: 'Not changed', isText: true }, 'Reason']
  return {
    title: `${ids.length - refused.length} of ${nounFor(resource, ids.length)} ${done}`,
    crumbs: recordCrumbs(resource),
    actions: buttonLink(back, 'Back to the list'),
    body: card('', table('Not changed', columns, refused)),
  }
}
