/** The form that creates a record. */
import { randomUUID } from 'node:crypto'
import { InvalidInput, StatusError } from '../../../errors.ts'
import type { Resource } from '../../../generated/resources.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import {
  AlreadyCreated,
  createOnce,
  FORM_KEY,
  formKey,
  RESENT_WITH_CHANGES,
} from '../idempotent-form.ts'
import type { ConsolePage, PageResult, Visit } from '../page.ts'
import type { Draft } from './draft.ts'
import { canViewExported } from './export-file.ts'
import { schemaFields, writeField } from './fields.ts'
import type { RecordForm } from './form-context.ts'
import { capital, noun, plural } from './labels.ts'
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

export async function newPage(visit: Visit, resource: Resource): Promise<ConsolePage> {
  const schema = resource.creation ?? {}
  return page(visit, resource, await loadForm(visit, schema, startDraft(schema, visit.query)))
}

/** Default values, overridden by the query of the link to the form. */
function startDraft(schema: Schema, query: URLSearchParams): Draft {
  const draft = new URLSearchParams()
  for (const field of schemaFields('', schema)) {
    const value = query.get(field.path)
    if (value !== null) draft.set(field.path, value)
    else if (field.schema.default !== undefined && field.kind !== 'json')
      writeField(draft, field, field.schema.default)
  }
  return draft
}

export async function createRecord(visit: Visit, resource: Resource): Promise<PageResult> {
  const schema = resource.creation ?? {}
  const { create: operation } = resource.operations
  if (operation === null) return visit.ctx.throw(404)
  const actionForm = await applyFormAction(visit, schema)
  if (actionForm) return page(visit, resource, actionForm)
  const form = await readSubmittedForm(visit, schema)
  try {
    const body = toRequestBody(operation, form.fields, form.draft, { isNew: true })
    assertCanExport(visit, body)
    const { id } = (await visit.call(operation, {
      body,
      around: (scope, make) => createOnce(visit, scope, make as () => Promise<Item>),
    })) as Item
    return {
      to: addressOf(resource, id),
      notice: { kind: 'ok', text: `${capital(noun(resource))} created.` },
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
    if (error instanceof AlreadyCreated) {
      if (error.hasDifferentInput)
        return {
          ...page(visit, resource, { ...form, problem: RESENT_WITH_CHANGES }, randomUUID()),
          status: 422,
        }
      return {
        to: addressOf(resource, error.id),
        notice: {
          kind: 'ok',
          text: `The ${noun(resource)} was already created.`,
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

/** An export must not give a user records that the console hides. */
function assertCanExport(visit: Visit, body: Record<string, unknown>): void {
  const exported = resourceByOption(body.resource)
  if (exported && !canViewExported(visit.user, body))
    throw new StatusError(
      403,
      `You do not have access to ${plural(exported).toLowerCase()}, so you cannot export them.`,
    )
}

function page(
  visit: Visit,
  resource: Resource,
  form: LoadedForm & Partial<RecordForm>,
  key = formKey(visit),
): ConsolePage {
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
