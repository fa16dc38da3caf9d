/** Changing a record: only what somebody has changed is sent, and nothing that somebody else has changed meanwhile is lost. */
import { createHash } from 'node:crypto'
import { InvalidInput, StatusError } from '../../../errors.ts'
import type { Resource } from '../../../generated/resources.ts'
import type { Content } from '../../shared/html.ts'
import type { Answer, Page, Visit } from '../page.ts'
import { storedValue } from './controls.ts'
import { copyField, type Draft, isInForm, textsOf } from './draft.ts'
import type { Field } from './field.ts'
import { isSame, writeField } from './fields.ts'
import type { RecordForm } from './form-context.ts'
import { plural } from './labels.ts'
import { recordForm } from './record-form.ts'
import { titleOf } from './record-page.ts'
import { findItem, referredTo } from './references.ts'
import { addressOf, type Item } from './resources.ts'
import {
  asked,
  bodyOf,
  type Filled,
  filled,
  foundInstead,
  isTooMuch,
  sent,
} from './submitted-form.ts'

/** The version of the record that the form began with. */
const VERSION = 'updated_at'
/** What a field held when the form began. */
const wasName = ({ path }: Field): string => `was:${path}`

export async function editPage(visit: Visit, resource: Resource, item: Item): Promise<Page> {
  const schema = resource.change ?? {}
  // What a field holds can depend on the fields that the rest of the record leads to.
  const { fields } = await filled(visit, schema, new URLSearchParams(), item)
  return page(visit, resource, item, await filled(visit, schema, begun(fields, item), item))
}

function begun(fields: Field[], item: Item): Draft {
  const draft = new URLSearchParams()
  for (const field of fields) begin(draft, field, item)
  draft.set(VERSION, String(item.updated_at))
  return draft
}

function begin(draft: Draft, field: Field, item: Item): void {
  if (item[field.path] !== undefined) writeField(draft, field, item[field.path])
  draft.set(wasName(field), fingerprint(draft, field))
}

function fingerprint(draft: Draft, field: Field): string {
  return createHash('sha256').update(textsOf(draft, field)).digest('base64url').slice(0, 16)
}

/** Has somebody changed it, since the form began? Without that being said, it is compared with the record. */
function isChanged(draft: Draft, field: Field, item: Item): boolean {
  const was = draft.get(wasName(field))
  if (was !== null) return fingerprint(draft, field) !== was
  return isInForm(draft, field) && !isSame(draft, field, item[field.path])
}

export async function change(visit: Visit, resource: Resource, item: Item): Promise<Answer> {
  const schema = resource.change ?? {}
  const { update } = resource.operations
  if (update === null) return visit.ctx.throw(404)
  const ask = await asked(visit, schema, item)
  if (ask) return page(visit, resource, item, ask)
  const form = await sent(visit, schema, item)
  const changed = form.fields.filter((field) => isChanged(form.draft, field, item))
  const to = addressOf(resource, item.id)
  if (changed.length === 0) return { to, notice: { kind: 'ok', text: 'Nothing was changed.' } }
  try {
    const body = bodyOf(update, changed, form.draft, { isNew: false, current: item })
    const updatedAt = form.draft.get(VERSION) ?? undefined
    await visit.call(update, { path: { [resource.type]: item.id }, body, updatedAt })
    return { to, notice: { kind: 'ok', text: 'The changes are saved.' } }
  } catch (error) {
    if (error instanceof InvalidInput) {
      const { errors } = error
      return {
        ...page(visit, resource, item, {
          ...form,
          errors,
          found: await foundInstead(visit, form, errors),
        }),
        status: 422,
      }
    }
    if (isTooMuch(error))
      return { ...page(visit, resource, item, { ...form, problem: error.message }), status: 422 }
    if (error instanceof StatusError && error.status === 412)
      return conflict(visit, resource, form, changed)
    throw error
  }
}

/** The form again, with what is stored by now: in the fields that nobody has touched here, and beside those that somebody has. */
async function conflict(
  visit: Visit,
  resource: Resource,
  { draft, fields }: Filled,
  changed: Field[],
): Promise<Answer> {
  const item = await findItem(visit, resource, visit.params.record ?? '')
  if (!item) return visit.ctx.throw(404)
  const now = begun(fields, item)
  for (const field of changed) copyField(now, draft, field)
  const form = await filled(visit, resource.change ?? {}, now, item)
  const known = await referredTo(visit, [item])
  const stored = changed
    .filter((field) => !isSame(now, field, item[field.path]))
    .map((field): [string, Content] => [
      field.path,
      storedValue(field, item[field.path], known, visit.now),
    ])
  const problem =
    'Somebody has changed this record while you did. Nothing of yours is saved yet: look at what is stored now, beside your changes, and save again.'
  return {
    ...page(visit, resource, item, { ...form, stored: Object.fromEntries(stored), problem }),
    status: 409,
  }
}

function page(
  visit: Visit,
  resource: Resource,
  item: Item,
  form: Filled & Partial<RecordForm>,
): Page {
  const { draft, fields, known } = form
  const required = new Set(resource.creation?.required)
  const keep = [VERSION, ...fields.map(wasName)]
  const title = titleOf(resource, item, known)
  return {
    title: `Edit ${title}`,
    isNarrow: true,
    crumbs: [
      { label: plural(resource), to: addressOf(resource) },
      { label: title, to: addressOf(resource, item.id) },
    ],
    body: recordForm({
      ...form,
      fields: fields.map((field) => ({ ...field, isRequired: required.has(field.path) })),
      to: addressOf(resource, item.id, 'edit'),
      cancel: addressOf(resource, item.id),
      submit: 'Save changes',
      user: visit.user,
      now: visit.now,
      isNew: false,
      hidden: keep.flatMap((name): [string, string][] =>
        draft.has(name) ? [[name, draft.get(name) ?? '']] : [],
      ),
    }),
  }
}
