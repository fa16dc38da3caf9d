import { StatusError } from '../../../errors.ts'
import type { Resource } from '../../../generated/resources.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { capital } from '../format.ts'
import {
  AlreadyCreated,
  FORM_KEY,
  formKey,
  formRequest,
  RESENT_WITH_CHANGES,
} from '../idempotent-form.ts'
import { type ConsolePage, type PageResult, redirect, type Visit } from '../page.ts'
import { card } from '../ui.ts'
import type { Draft } from './draft.ts'
import { canViewExported } from './export-file.ts'
import { schemaFields, writeField } from './fields.ts'
import type { RecordForm } from './form-parts.ts'
import { noun, plural } from './labels.ts'
import { recordForm } from './record-form.ts'
import { type Item, recordCrumbs, resourceByOption, resourcePath } from './resources.ts'
import {
  applyFormAction,
  type LoadedForm,
  loadForm,
  problemStatus,
  readSubmittedForm,
  toRequestBody,
  withProblem,
} from './submitted-form.ts'

export async function newPage(visit: Visit, resource: Resource): Promise<ConsolePage> {
  const schema = resource.creation ?? {}
  return renderForm(visit, resource, await loadForm(visit, schema, startDraft(schema, visit.query)))
}

/** Default values, overridden by the query of the link to the form. */
function startDraft(schema: Schema, query: URLSearchParams): Draft {
  const draft = new URLSearchParams()
  for (const field of schemaFields('', schema)) {
    const value = query.get(field.path)
    if (value !== null) draft.set(field.path, value)
    // A default in a `json` field would count as JSON that the user typed: see `withKeyedFields`
    // in keyed-fields.ts.
    else if (field.schema.default !== undefined && field.kind !== 'json')
      writeField(draft, field, field.schema.default)
  }
  return draft
}

export async function createRecord(visit: Visit, resource: Resource): Promise<PageResult> {
  const schema = resource.creation ?? {}
  const { create: operation } = resource.operations
  if (operation === null) return visit.ctx.throw(404)
  const formAfterAction = await applyFormAction(visit, schema)
  if (formAfterAction) return renderForm(visit, resource, formAfterAction)
  const form = await readSubmittedForm(visit, schema)
  try {
    const body = toRequestBody(operation, form.fields, form.draft, { isNew: true })
    assertCanExport(visit, body)
    const idempotency = formRequest(visit)
    const { id } = (await visit.call(operation, { body, idempotency })) as Item
    return redirect(resourcePath(resource, id), `${capital(noun(resource))} created.`)
  } catch (error) {
    if (error instanceof AlreadyCreated && !error.hasDifferentInput)
      return redirect(
        resourcePath(resource, error.id),
        `The ${noun(resource)} was already created.`,
      )
    const failedForm =
      error instanceof AlreadyCreated
        ? { ...form, problem: RESENT_WITH_CHANGES }
        : await withProblem(visit, form, error)
    return { ...renderForm(visit, resource, failedForm), status: problemStatus(error) }
  }
}

/** Throws 403 for an export of records that the console hides from the user. */
function assertCanExport(visit: Visit, body: Record<string, unknown>): void {
  const exported = resourceByOption(body.resource)
  if (exported && !canViewExported(visit.user, body))
    throw new StatusError(
      403,
      `You do not have access to ${plural(exported).toLowerCase()}, so you cannot export them.`,
    )
}

function renderForm(
  visit: Visit,
  resource: Resource,
  form: LoadedForm & Partial<RecordForm>,
): ConsolePage {
  return {
    title: `New ${noun(resource)}`,
    isNarrow: true,
    crumbs: recordCrumbs(resource),
    body: card(
      '',
      recordForm({
        ...form,
        to: `${resourcePath(resource)}/new`,
        cancel: resourcePath(resource),
        submit: `Create ${noun(resource)}`,
        user: visit.user,
        now: visit.now,
        isNew: true,
        hidden: { [FORM_KEY]: formKey(visit, form.problem) },
      }),
    ),
  }
}
