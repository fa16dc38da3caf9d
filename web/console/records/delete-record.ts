/** Deletes a record, after a page that asks the user to confirm. */
import { InvalidInput, StatusError } from '../../../errors.ts'
import { operations } from '../../../generated/operations.ts'
import type { Resource } from '../../../generated/resources.ts'
import { type Content, html } from '../../shared/html.ts'
import { formPage } from '../form-fields.ts'
import { capital } from '../format.ts'
import { type ConsolePage, type PageResult, redirect, type Visit } from '../page.ts'
import { hiddenInput } from '../ui.ts'
import { VERSION_FIELD } from './edit-record.ts'
import { canViewExported } from './export-file.ts'
import { errorText, noun } from './labels.ts'
import { findRecord, loadReferences, recordTitle } from './references.ts'
import { type Item, recordCrumbs, resourcePath } from './resources.ts'

export async function deletePage(
  visit: Visit,
  resource: Resource,
  item: Item,
  problem?: string,
): Promise<ConsolePage> {
  const title = recordTitle(resource, item, await loadReferences(visit, [item]))
  return formPage(
    { title: `Delete ${title}?`, crumbs: recordCrumbs(resource, { id: item.id, title }) },
    {
      to: resourcePath(resource, item.id, 'delete'),
      submit: `Delete ${noun(resource)}`,
      style: 'danger',
      cancel: resourcePath(resource, item.id),
      problem,
    },
    [versionInput(resource, item), html`<p>${deletionText(resource)}</p>`],
  )
}

/** The version that the user has seen. Resources without an update operation, such as exports, need
 *  none: only the service changes them. */
function versionInput({ operations: { update } }: Resource, { updated_at }: Item): Content {
  return update !== null && hiddenInput(VERSION_FIELD, String(updated_at))
}

/** What a deletion means. */
export function deletionText({ operations: { delete: id } }: Resource): string {
  const emits = id !== null && operations[id].emits.length > 0
  return `This cannot be undone.${emits ? ' Subscribed webhooks will be notified.' : ''}`
}

export const HIDDEN_RECORDS =
  'You do not have access to the records of this export, so you cannot delete it.'

export async function deleteRecord(
  visit: Visit,
  resource: Resource,
  item: Item,
): Promise<PageResult> {
  const operation = resource.operations.delete
  if (operation === null) return visit.ctx.throw(404)
  if (!canViewExported(visit.user, item))
    return { ...(await deletePage(visit, resource, item, HIDDEN_RECORDS)), status: 403 }
  try {
    await visit.call(operation, {
      path: { [resource.idParameter]: item.id },
      updatedAt: visit.form.get(VERSION_FIELD) ?? undefined,
    })
    return redirect(resourcePath(resource), `${capital(noun(resource))} deleted.`)
  } catch (error) {
    if (error instanceof InvalidInput) return deletePage(visit, resource, item, errorText(error))
    if (error instanceof StatusError && error.status === 412) return conflictPage(visit, resource)
    throw error
  }
}

async function conflictPage(visit: Visit, resource: Resource): Promise<PageResult> {
  const item = await findRecord(visit, resource, visit.params.record ?? '')
  if (!item) return visit.ctx.throw(404)
  const problem =
    'Someone else has updated this record, so it is not deleted. Review it before you delete it.'
  return { ...(await deletePage(visit, resource, item, problem)), status: 409 }
}
