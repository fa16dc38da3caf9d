/** A form that was sent: its fields, its values, and what it asks for instead of being saved. */
import { validate as isUuid } from 'uuid'
import { type FieldErrors, InvalidInput, StatusError } from '../../../errors.ts'
import type { OperationId } from '../../../generated/operations.ts'
import * as validators from '../../../generated/validators.js'
import { assertValid } from '../../../operations/validation.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import type { Visit } from '../page.ts'
import { countName, type Draft, groupCount, isEmptyGroup, withoutGroups } from './draft.ts'
import type { Field } from './field.ts'
import { partsOf, readField } from './fields.ts'
import { type Asking, askName, type RecordForm } from './form-context.ts'
import { withKeys } from './keyed-fields.ts'
import { type Known, referredTo, search } from './references.ts'
import { type Item, maySee, referencedBy } from './resources.ts'

/** Enough for any record: reading a form takes time by the square of it. */
const MOST_FIELDS = 2_000

export interface Filled {
  fields: Field[]
  draft: Draft
  known: Known
}

/** The fields of the body with what depends on what is in them. */
export async function filled(
  visit: Visit,
  schema: Schema,
  draft: Draft,
  current?: Item,
): Promise<Filled> {
  const fields = await withKeys(visit, partsOf('', schema), draft, current)
  const references = referencesIn(fields).map(({ path, name }) => ({ [name]: draft.get(path) }))
  return { fields, draft, known: await referredTo(visit, [...references, current ?? {}]) }
}

/** Also those inside of others. */
function referencesIn(fields: Field[]): Field[] {
  return fields.flatMap((field) =>
    field.kind === 'reference' ? [field] : referencesIn(field.parts ?? []),
  )
}

function draftOf({ form, ctx }: Visit): Draft {
  if (form.size > MOST_FIELDS) ctx.throw(413, `The form has more than ${MOST_FIELDS} fields.`)
  return new URLSearchParams(form)
}

/** The form as it was sent, without groups that nobody has filled in: the API counts them from the first that is. */
export async function sent(visit: Visit, schema: Schema, current?: Item): Promise<Filled> {
  const lists = partsOf('', schema).filter(({ kind }) => kind === 'groups')
  const isEmpty = (draft: Draft, field: Field) => (index: number) =>
    isEmptyGroup(draft, field, index)
  const draft = lists.reduce(
    (rest, field) => withoutGroups(rest, field, isEmpty(rest, field)),
    draftOf(visit),
  )
  return filled(visit, schema, draft, current)
}

/** The form as it is asked for: with something found, chosen, added or removed. Undefined when it is to be saved. */
export async function asked(
  visit: Visit,
  schema: Schema,
  current?: Item,
): Promise<(Filled & Pick<RecordForm, 'found'>) | undefined> {
  const ask = (asking: Asking): string | undefined =>
    visit.form.get(askName(asking)) ?? visit.query.get(askName(asking)) ?? undefined
  const draft = draftOf(visit)
  const find = ask('find')
  if (find !== undefined) {
    const form = await filled(visit, schema, draft, current)
    return { ...form, found: await found(visit, form, find) }
  }
  const changed =
    withChoice(draft, ask('choose')) ??
    withGroup(draft, schema, ask('add')) ??
    withoutGroup(draft, schema, ask('remove'))
  if (changed) return filled(visit, schema, changed, current)
  return ask('refresh') === undefined ? undefined : filled(visit, schema, draft, current)
}

/** `participant_id=0193…`. */
function withChoice(draft: Draft, choice = ''): Draft | undefined {
  const [, path, id = ''] = /^([^=]+)=(.*)$/.exec(choice) ?? []
  if (path === undefined) return undefined
  draft.set(path, id)
  return draft
}

function withGroup(draft: Draft, schema: Schema, path = ''): Draft | undefined {
  const field = groupsAt(schema, path)
  if (!field) return undefined
  draft.set(countName(path), String(Math.max(1, groupCount(draft, field)) + 1))
  return draft
}

/** `screening_questions.1`. */
function withoutGroup(draft: Draft, schema: Schema, place = ''): Draft | undefined {
  const [, path = '', index] = /^(.+)\.(\d+)$/.exec(place) ?? []
  const field = groupsAt(schema, path)
  return field && withoutGroups(draft, field, (one) => one === Number(index))
}

function groupsAt(schema: Schema, path: string): Field | undefined {
  return partsOf('', schema).find((field) => field.kind === 'groups' && field.path === path)
}

/** Records for a reference that was refused because it is a name, and not yet an id. */
export async function foundInstead(
  visit: Visit,
  form: Filled,
  errors: FieldErrors,
): Promise<RecordForm['found']> {
  const textIn = ({ path }: Field): string => form.draft.get(path) ?? ''
  const refused = referencesIn(form.fields).find(
    (field) => field.path in errors && textIn(field) !== '' && !isUuid(textIn(field)),
  )
  return refused && found(visit, form, refused.path)
}

async function found(
  visit: Visit,
  { fields, draft }: Filled,
  path: string,
): Promise<RecordForm['found']> {
  const references = referencesIn(fields)
  const field = references.find((one) => one.path === path)
  const resource = field && referencedBy(field.name)
  if (!resource || !maySee(visit.user, resource)) return undefined
  const beside = references
    .filter((one) => one !== field)
    .map((one): [string, string] => [one.name, draft.get(one.path) ?? ''])
  return {
    path,
    found: await search(
      visit,
      resource,
      (draft.get(path) ?? '').trim(),
      Object.fromEntries(beside),
    ),
  }
}

/** The values of the fields as the contract takes them. Throws InvalidInput for what it does not take, all at once. */
export function bodyOf(
  id: OperationId,
  fields: Field[],
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
    throw new InvalidInput({ ...errorsOf(id, body), ...problems })
  return body
}

/** More values, or deeper ones, than the API takes: of no field alone. */
export function isTooMuch(error: unknown): error is StatusError {
  return error instanceof StatusError && error.status === 400
}

function errorsOf(id: OperationId, body: object): FieldErrors {
  const validator = validators.bodies[id]
  try {
    if (validator) assertValid(validator, structuredClone(body))
    return {}
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error
    return error.errors
  }
}
