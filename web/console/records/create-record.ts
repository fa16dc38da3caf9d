/** Making a record. */
import { randomUUID } from 'node:crypto'
import { InvalidInput, StatusError } from '../../../errors.ts'
import type { Resource } from '../../../generated/resources.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { FORM_KEY, formKey, MadeBefore, once, SENT_OTHERWISE } from '../once.ts'
import type { Answer, Page, Visit } from '../page.ts'
import type { Draft } from './draft.ts'
import { canViewExported } from './export-file.ts'
import { schemaFields, writeField } from './fields.ts'
import type { RecordForm } from './form-context.ts'
import { noun, plural } from './labels.ts'
import { recordForm } from './record-form.ts'
import { addressOf, type Item, resourceByOption } from './resources.ts'
import {
  applyFormAction,
  isBadRequest,
  type LoadedForm,
  loadForm,
  readSubmittedForm,
  suggestRecords,
  toRequestBody,
} from './submitted-form.ts'

export async function newPage(visit: Visit, resource: Resource): Promise<Page> {
  const schema = resource.creation ?? {}
  return page(visit, resource, await loadForm(visit, schema, startDraft(schema, visit.query)))
}

/** With what the contract takes when nothing is said, and what a link to the form says. */
function startDraft(schema: Schema, given: URLSearchParams): Draft {
  const draft = new URLSearchParams()
  for (const field of schemaFields('', schema)) {
    const value = given.get(field.path)
    if (value !== null) draft.set(field.path, value)
    else if (field.schema.default !== undefined && field.kind !== 'json')
      writeField(draft, field, field.schema.default)
  }
  return draft
}

export async function createRecord(visit: Visit, resource: Resource): Promise<Answer> {
  const schema = resource.creation ?? {}
  const { create: operation } = resource.operations
  if (operation === null) return visit.ctx.throw(404)
  const ask = await applyFormAction(visit, schema)
  if (ask) return page(visit, resource, ask)
  const form = await readSubmittedForm(visit, schema)
  try {
    const body = toRequestBody(operation, form.fields, form.draft, { isNew: true })
    assertCanExport(visit, body)
    const { id } = (await visit.call(operation, {
      body,
      around: (scope, make) => once(visit, scope, make as () => Promise<Item>),
    })) as Item
    return {
      to: addressOf(resource, id),
      notice: { kind: 'ok', text: `The ${noun(resource)} is created.` },
    }
  } catch (error) {
    if (error instanceof InvalidInput) {
      const { errors } = error
      return {
        ...page(visit, resource, {
          ...form,
          errors,
          suggestions: await suggestRecords(visit, form, errors),
        }),
        status: 422,
      }
    }
    if (error instanceof MadeBefore) {
      if (error.isOther)
        return {
          ...page(visit, resource, { ...form, problem: SENT_OTHERWISE }, randomUUID()),
          status: 422,
        }
      return {
        to: addressOf(resource, error.id),
        notice: {
          kind: 'ok',
          text: `The ${noun(resource)} was created when the form was sent before.`,
        },
      }
    }
    if (error instanceof StatusError && error.status === 403)
      return { ...page(visit, resource, { ...form, problem: error.message }), status: 403 }
    if (isBadRequest(error))
      return { ...page(visit, resource, { ...form, problem: error.message }), status: 422 }
    throw error
  }
}

/** Who may not see the records must not get them in a file. */
function assertCanExport(visit: Visit, body: Record<string, unknown>): void {
  const held = resourceByOption(body.resource)
  if (held && !canViewExported(visit.user, body))
    throw new StatusError(
      403,
      `You have no permission to see ${plural(held).toLowerCase()}, so they cannot be yours in a file.`,
    )
}

function page(
  visit: Visit,
  resource: Resource,
  form: LoadedForm & Partial<RecordForm>,
  key = formKey(visit),
): Page {
  return {
    title: `New ${noun(resource)}`,
    isNarrow: true,
    crumbs: [{ label: plural(resource), to: addressOf(resource) }],
    body: recordForm({
      ...form,
      to: `${addressOf(resource)}/new`,
      cancel: addressOf(resource),
      submit: `Create ${noun(resource)}`,
      user: visit.user,
      now: visit.now,
      isNew: true,
      hidden: [[FORM_KEY, key]],
    }),
  }
}
