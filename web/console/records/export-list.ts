/** The page that exports what a list shows, in a format that the user chooses. */
import { type OperationRow, operations } from '../../../generated/operations.ts'
import type { Resource } from '../../../generated/resources.ts'
import { html } from '../../shared/html.ts'
import { counted } from '../format.ts'
import { newFormKey } from '../idempotent-form.ts'
import type { ConsolePage, Visit } from '../page.ts'
import { actionForm, actionRow, actionRows, card } from '../ui.ts'
import { noun, option, plural } from './labels.ts'
import { filterChips } from './list-filters.ts'
import { convertQuery, filterParameter, filtersIn, normalizeQuery } from './list-query.ts'
import { listRecords, loadReferences } from './references.ts'
import { findResource, optionOf, recordCrumbs, resourcePath } from './resources.ts'
import { wordingOf } from './wording.ts'

export async function exportListPage(visit: Visit, resource: Resource): Promise<ConsolePage> {
  const operation: OperationRow = operations[resource.operations.list]
  const filters = filtersIn(normalizeQuery(resource, visit.query))
  const pairs = Object.entries(filters).map(([name, value]): [string, string] => [
    filterParameter(name),
    value,
  ])
  const query = { ...convertQuery(operation, pairs), 'page[size]': 1 }
  const { meta } = await listRecords(visit, resource, query)
  const known = await loadReferences(visit, [filters])
  const path = `${resourcePath(resource)}/export`
  return {
    title: `Export ${counted(meta.total, noun(resource), plural(resource).toLowerCase())}`,
    crumbs: recordCrumbs(resource),
    isNarrow: true,
    body: html`
      ${filterChips({ resource, available: resource.filters, pairs, known }, path)}
      ${card('Choose a format', formats(resource, filters))}`,
  }
}

function formats(resource: Resource, filters: Record<string, string>) {
  const exports = findResource('exports')
  const schema = exports?.creation?.properties?.format ?? {}
  const fields = Object.entries(filters).map(([name, value]) => [`filters.${name}`, value])
  const rows = (schema.enum ?? []).map((format) => {
    const name = option(format, schema)
    return actionRow({
      title: name,
      text: wordingOf('format').options?.[String(format)] ?? '',
      control: actionForm({
        to: '/records/exports/new',
        label: html`Export<span class="visually-hidden"> as ${name}</span>`,
        fields: {
          ...newFormKey(),
          ...Object.fromEntries(fields),
          resource: optionOf(resource),
          format: String(format),
        },
      }),
    })
  })
  return actionRows(rows)
}
