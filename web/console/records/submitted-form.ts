/** Reads a submitted record form, and applies actions that do not save it, such as adding a group
 *  (the fields for one more object of a list). */
import { validate as isUuid } from 'uuid'
import { type FieldErrors, InvalidInput, StatusError } from '../../../errors.ts'
import type { OperationId } from '../../../generated/operations.ts'
import * as validators from '../../../generated/validators.js'
import type { Schema } from '../../../scripts/model/schema.ts'
import { assertValid } from '../../../validation.ts'
import type { Visit } from '../page.ts'
import { amountPreview, isUnseen } from './amounts.ts'
import { countName, type Draft, groupCount, isEmptyGroup, withoutGroups } from './draft.ts'
import type { FormField } from './field.ts'
import { readField, schemaFields } from './fields.ts'
import { actionName, type FormAction, type RecordForm } from './form-parts.ts'
import { withKeyedFields } from './keyed-fields.ts'
import { withOwnCurrencies } from './own-currencies.ts'
import { type KnownRecords, loadReferences, searchRecords } from './references.ts'
import { canViewResource, type Item, referencedResource } from './resources.ts'

/** Reading a form takes quadratic time in the number of its fields. */
const MAX_FIELDS = 2_000

export interface LoadedForm {
  fields: FormField[]
  draft: Draft
  known: KnownRecords
}

/** Loads the fields of the schema and the records that the draft and `current` refer to. Fields can
 *  have parts that depend on the draft. `current` is the stored record on an update. */
export async function loadForm(
  visit: Visit,
  schema: Schema,
  draft: Draft,
  current?: Item,
): Promise<LoadedForm> {
  const keyed = await withKeyedFields(visit, schemaFields('', schema), draft, current)
  const fields = await withOwnCurrencies(visit, keyed)
  const references = referencesIn(fields).map(({ path, name }) => ({ [name]: draft.get(path) }))
  return { fields, draft, known: await loadReferences(visit, [...references, current ?? {}]) }
}

/** Includes the references in the parts of other fields, but not those in groups: a field with
 *  groups has no `parts`. */
function referencesIn(fields: FormField[]): FormField[] {
  return fields.flatMap((field) =>
    field.kind === 'reference' ? [field] : referencesIn(field.parts ?? []),
  )
}

function readDraft({ form, ctx }: Visit): Draft {
  if (form.size > MAX_FIELDS) ctx.throw(413, `The form has more than ${MAX_FIELDS} fields.`)
  return new URLSearchParams(form)
}

/** The submitted form without empty groups, so that indexes in errors match the groups on the
 *  page. */
export async function readSubmittedForm(
  visit: Visit,
  schema: Schema,
  current?: Item,
): Promise<LoadedForm> {
  const submitted = readDraft(visit)
  let draft = submitted
  for (const field of schemaFields('', schema))
    if (field.kind === 'groups')
      draft = withoutGroups(draft, field, (index) => isEmptyGroup(submitted, field, index))
  return loadForm(visit, schema, draft, current)
}

/** The form after its action, such as a search or an added group. Undefined if the form is to be
 *  saved. The form asks once more if it has an amount that the user has not seen as the console
 *  reads it: without JavaScript, there is no preview while typing. */
export async function applyFormAction(
  visit: Visit,
  schema: Schema,
  current?: Item,
): Promise<(LoadedForm & Pick<RecordForm, 'suggestions' | 'notice'>) | undefined> {
  const actionValue = (action: FormAction): string | undefined =>
    visit.form.get(actionName(action)) ?? visit.query.get(actionName(action)) ?? undefined
  const draft = readDraft(visit)
  const searchedPath = actionValue('find')
  if (searchedPath !== undefined) {
    const form = await loadForm(visit, schema, draft, current)
    return { ...form, suggestions: await searchFor(visit, form, searchedPath) }
  }
  const changed =
    withChoice(draft, actionValue('choose')) ??
    withGroup(draft, schema, actionValue('add')) ??
    withoutGroup(draft, schema, actionValue('remove'))
  if (changed) return loadForm(visit, schema, changed, current)
  if (actionValue('refresh') !== undefined) return loadForm(visit, schema, draft, current)
  const unseen = schemaFields('', schema).find((field) => isUnseen(draft, field))
  if (!unseen) return undefined
  const notice = `Check the amount, then save: ${amountPreview(draft, unseen)}`
  return { ...(await loadForm(visit, schema, draft, current)), notice }
}

/** Sets the chosen ID in `draft`. `choice`: for example `participant_id=0193…`. Undefined without a
 *  choice. */
function withChoice(draft: Draft, choice = ''): Draft | undefined {
  const [, path, id = ''] = /^([^=]+)=(.*)$/.exec(choice) ?? []
  if (path === undefined) return undefined
  draft.set(path, id)
  return draft
}

/** Adds an empty group to `draft`. A list without groups already shows one empty group. Undefined
 *  if `path` is not a list of groups. */
function withGroup(draft: Draft, schema: Schema, path = ''): Draft | undefined {
  const field = groupsAt(schema, path)
  if (!field) return undefined
  draft.set(countName(path), String(Math.max(1, groupCount(draft, field)) + 1))
  return draft
}

/** The draft without the group, for example `screening_questions.1`. Undefined if `group` names no
 *  list of groups. */
function withoutGroup(draft: Draft, schema: Schema, group = ''): Draft | undefined {
  const [, path = '', index] = /^(.+)\.(\d+)$/.exec(group) ?? []
  const field = groupsAt(schema, path)
  return field && withoutGroups(draft, field, (one) => one === Number(index))
}

function groupsAt(schema: Schema, path: string): FormField | undefined {
  return schemaFields('', schema).find((field) => field.kind === 'groups' && field.path === path)
}

/** The form shows errors of operations with these statuses. 400: the whole body is invalid, for
 *  example too deep. 403: the user may not export these records. 429: the account has reached a
 *  quota. */
const SHOWN_STATUSES = [400, 403, 429]

/** The form with the reason why it was not saved. Rethrows errors that the form cannot explain. */
export async function withProblem(
  visit: Visit,
  form: LoadedForm,
  error: unknown,
): Promise<LoadedForm & Pick<RecordForm, 'errors' | 'problem' | 'suggestions'>> {
  if (error instanceof InvalidInput) {
    const { errors } = error
    return { ...form, errors, suggestions: await suggestRecords(visit, form, errors) }
  }
  if (!(error instanceof StatusError && SHOWN_STATUSES.includes(error.status))) throw error
  visit.ctx.set(error.headers)
  return { ...form, problem: error.message }
}

/** The status of the page with the form that was not saved. */
export function problemStatus(error: unknown): number {
  return error instanceof StatusError && error.status !== 400 ? error.status : 422
}

/** Search results for the first invalid reference that holds a name instead of an ID. */
async function suggestRecords(
  visit: Visit,
  form: LoadedForm,
  errors: FieldErrors,
): Promise<RecordForm['suggestions']> {
  const invalid = referencesIn(form.fields).find(({ path }) => {
    const text = form.draft.get(path) ?? ''
    return path in errors && text !== '' && !isUuid(text)
  })
  return invalid && searchFor(visit, form, invalid.path)
}

async function searchFor(
  visit: Visit,
  { fields, draft }: LoadedForm,
  path: string,
): Promise<RecordForm['suggestions']> {
  const references = referencesIn(fields)
  const field = references.find((one) => one.path === path)
  const resource = field && referencedResource(field.name)
  if (!resource || !canViewResource(visit.user, resource)) return undefined
  const others = Object.fromEntries(
    references.filter((one) => one !== field).map((one) => [one.name, draft.get(one.path) ?? '']),
  )
  const text = draft.get(path) ?? ''
  return { path, result: await searchRecords(visit, resource, text, others) }
}

/** Returns the request body, which is not validated. If a text cannot be converted, throws
 *  `InvalidInput` with this error and the errors that the contract finds in the body. */
export function toRequestBody(
  id: OperationId,
  fields: FormField[],
  draft: Draft,
  { isNew, current }: { isNew: boolean; current?: Item },
): Record<string, unknown> {
  const problems: FieldErrors = Object.create(null)
  const entries = fields.map(
    (field) =>
      [field.path, readField(draft, field, { isNew, problems }, current?.[field.path])] as const,
  )
  const body = Object.fromEntries(entries.filter(([, value]) => value !== undefined))
  if (Object.keys(problems).length > 0)
    throw new InvalidInput({ ...validateBody(id, body), ...problems })
  return body
}

function validateBody(id: OperationId, body: object): FieldErrors {
  const validator = validators.bodies[id]
  try {
    if (validator) assertValid(validator, structuredClone(body))
    return {}
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error
    return error.errors
  }
}
