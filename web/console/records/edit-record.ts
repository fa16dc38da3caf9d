/** Edits a record. Sends only changed fields, and detects concurrent updates by `updated_at`. */
import { createHash } from 'node:crypto'
import { StatusError } from '../../../errors.ts'
import type { Resource } from '../../../generated/resources.ts'
import type { Content } from '../../shared/html.ts'
import { type ConsolePage, type PageResult, redirect, type Visit } from '../page.ts'
import { card } from '../ui.ts'
import { cell, toText, type ValueContext } from './cells.ts'
import { copyField, type Draft, isInForm, serializeField } from './draft.ts'
import type { FormField } from './field.ts'
import { matchesValue, writeField } from './fields.ts'
import type { RecordForm } from './form-parts.ts'
import { recordForm } from './record-form.ts'
import { findRecord, loadReferences, recordTitle } from './references.ts'
import { type Item, recordCrumbs, resourcePath } from './resources.ts'
import {
  applyFormAction,
  type LoadedForm,
  loadForm,
  problemStatus,
  readSubmittedForm,
  toRequestBody,
  withProblem,
} from './submitted-form.ts'

/** The name of the input with the version of the record when the form was opened. */
export const VERSION_FIELD = 'updated_at'
/** The name of the input with the fingerprint of a field when the form was opened. */
const fingerprintName = ({ path }: FormField): string => `was:${path}`

export async function editPage(visit: Visit, resource: Resource, item: Item): Promise<ConsolePage> {
  const schema = resource.change ?? {}
  // `startDraft` needs the parts of keyed fields. They depend on the record, so load them first.
  const { fields } = await loadForm(visit, schema, new URLSearchParams(), item)
  return renderForm(
    visit,
    resource,
    item,
    await loadForm(visit, schema, startDraft(fields, item), item),
  )
}

function startDraft(fields: FormField[], item: Item): Draft {
  const draft = new URLSearchParams()
  for (const field of fields) startField(draft, field, item)
  draft.set(VERSION_FIELD, String(item.updated_at))
  return draft
}

function startField(draft: Draft, field: FormField, item: Item): void {
  if (item[field.path] !== undefined) writeField(draft, field, item[field.path])
  draft.set(fingerprintName(field), fingerprint(draft, field))
}

function fingerprint(draft: Draft, field: FormField): string {
  return createHash('sha256').update(serializeField(draft, field)).digest('base64url').slice(0, 16)
}

/** Whether the user changed the field. Compares the field with its fingerprint, or with the stored
 *  record if the form has no fingerprint. */
function isChanged(draft: Draft, field: FormField, item: Item): boolean {
  const was = draft.get(fingerprintName(field))
  if (was !== null) return fingerprint(draft, field) !== was
  return isInForm(draft, field) && !matchesValue(draft, field, item[field.path])
}

export async function updateRecord(
  visit: Visit,
  resource: Resource,
  item: Item,
): Promise<PageResult> {
  const schema = resource.change ?? {}
  const { update } = resource.operations
  if (update === null) return visit.ctx.throw(404)
  const formAfterAction = await applyFormAction(visit, schema, item)
  if (formAfterAction) return renderForm(visit, resource, item, formAfterAction)
  const form = await readSubmittedForm(visit, schema, item)
  const changed = form.fields.filter((field) => isChanged(form.draft, field, item))
  const to = resourcePath(resource, item.id)
  if (changed.length === 0) return redirect(to, 'No changes to save.')
  try {
    const body = toRequestBody(update, changed, form.draft, { isNew: false, current: item })
    const updatedAt = form.draft.get(VERSION_FIELD) ?? undefined
    await visit.call(update, { path: { [resource.idParameter]: item.id }, body, updatedAt })
    return redirect(to, 'Changes saved.')
  } catch (error) {
    if (error instanceof StatusError && error.status === 412)
      return conflictPage(visit, resource, form, changed)
    return {
      ...renderForm(visit, resource, item, await withProblem(visit, form, error)),
      status: problemStatus(error),
    }
  }
}

/** The form after another user's update. The fields in `changed` keep what this user entered, and
 *  show the stored values beside it. The other fields get the stored values. */
async function conflictPage(
  visit: Visit,
  resource: Resource,
  { draft, fields }: LoadedForm,
  changed: FormField[],
): Promise<PageResult> {
  const item = await findRecord(visit, resource, visit.params.record ?? '')
  if (!item) return visit.ctx.throw(404)
  const to = resourcePath(resource, item.id)
  // The form was sent before, and its response got lost.
  if (changed.every((field) => matchesValue(draft, field, item[field.path])))
    return redirect(to, 'Changes saved.')
  const merged = startDraft(fields, item)
  for (const field of changed) copyField(merged, draft, field)
  const form = await loadForm(visit, resource.change ?? {}, merged, item)
  const known = await loadReferences(visit, [item])
  const stored = changed
    .filter((field) => !matchesValue(merged, field, item[field.path]))
    .map((field): [string, Content] => [
      field.path,
      storedValue(field, item, { known, now: visit.now }),
    ])
  const problem =
    'Someone else has updated this record. Your changes are not saved yet. ' +
    'Compare them with the stored values, then save again.'
  return {
    ...renderForm(visit, resource, item, { ...form, stored: Object.fromEntries(stored), problem }),
    status: 409,
  }
}

function storedValue(field: FormField, item: Item, context: ValueContext): Content {
  const value = item[field.path]
  if (Array.isArray(value)) return value.length === 0 ? 'empty' : value.map(toText).join(', ')
  if (typeof value === 'object' && value !== null) return JSON.stringify(value)
  return cell(field.name, field.schema, value, { ...context, item })
}

function renderForm(
  visit: Visit,
  resource: Resource,
  item: Item,
  form: LoadedForm & Partial<RecordForm>,
): ConsolePage {
  const { draft, fields, known } = form
  const requiredOnCreation = new Set(resource.creation?.required)
  const hiddenNames = [VERSION_FIELD, ...fields.map(fingerprintName)]
  const title = recordTitle(resource, item, known)
  return {
    title: `Edit ${title}`,
    isNarrow: true,
    crumbs: recordCrumbs(resource, { id: item.id, title }),
    body: card(
      '',
      recordForm({
        ...form,
        fields: fields.map((field) => ({
          ...withPossibleStatuses(field, resource, item),
          isRequired: requiredOnCreation.has(field.path),
        })),
        to: resourcePath(resource, item.id, 'edit'),
        cancel: resourcePath(resource, item.id),
        submit: 'Save',
        user: visit.user,
        now: visit.now,
        isNew: false,
        hidden: Object.fromEntries(
          hiddenNames
            .filter((name) => draft.has(name))
            .map((name) => [name, draft.get(name) ?? '']),
        ),
      }),
    ),
  }
}

/** The field `status` with the current status and those that can follow it. */
function withPossibleStatuses(
  field: FormField,
  { nextStatuses }: Resource,
  { status }: Item,
): FormField {
  const next = nextStatuses?.[String(status)]
  if (field.path !== 'status' || next === undefined) return field
  const isPossible = (value: unknown): boolean => value === status || next.includes(String(value))
  return { ...field, schema: { ...field.schema, enum: field.schema.enum?.filter(isPossible) } }
}
