/** Fields with open keys (`additionalProperties`): the contract does not name the keys, because
 *  other fields decide them. In `filters` of an export, the keys are the filters of the exported
 *  list. In the answers of an application, the keys are those of its job's questions. */
import { isDeepStrictEqual } from 'node:util'
import { validate as isUuid } from 'uuid'
import type { Resource } from '../../../generated/resources.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { timeLabel } from '../format.ts'
import type { Visit } from '../page.ts'
import { type Draft, isInForm, kindName } from './draft.ts'
import type { FieldKind, FormField } from './field.ts'
import { toFormField } from './fields.ts'
import { label, noun, option } from './labels.ts'
import { findKnownRecord, findRecord, type KnownRecords } from './references.ts'
import {
  canViewResource,
  type Item,
  isForPrograms,
  isResourceChoice,
  recordFields,
  referencedResource,
  resourceByOption,
} from './resources.ts'

/** Adds parts to the fields with open keys. `current` is the stored record on an update. */
export async function withKeyedFields(
  visit: Visit,
  fields: FormField[],
  draft: Draft,
  current: Item | undefined,
): Promise<FormField[]> {
  const form: Form = { fields, draft, current, dependents: new Map() }
  const keyed = await Promise.all(
    fields.map((field) => {
      if (field.name === 'columns' && fields.some(isResourceChoice))
        return columnsField(form, field)
      // A user who typed JSON gets the JSON back.
      if (!hasOpenKeys(field) || draft.has(field.path)) return field
      return filtersField(form, field) ?? answersField(visit, form, field)
    }),
  )
  return keyed.map((field) => {
    const dependents = form.dependents.get(field.path)
    return dependents ? { ...field, dependents } : field
  })
}

interface Form {
  fields: FormField[]
  draft: Draft
  current: Item | undefined
  /** Collects, by the path of the field that decides their keys, the paths of the keyed fields. */
  dependents: Map<string, string[]>
}

function addDependent({ dependents }: Form, driverPath: string, { path }: FormField): void {
  dependents.set(driverPath, [...(dependents.get(driverPath) ?? []), path])
}

function hasOpenKeys({ kind, schema }: FormField): boolean {
  return (
    kind === 'json' && schema.type === 'object' && typeof schema.additionalProperties === 'object'
  )
}

/** The schema of each value in an object with open keys. */
function valueSchema({ additionalProperties }: Schema): Schema {
  return typeof additionalProperties === 'object' ? additionalProperties : {}
}

/** Undefined if the field does not hold the filters of a list. */
function filtersField(form: Form, field: FormField): FormField | undefined {
  if (field.name !== 'filters' || !form.fields.some(isResourceChoice)) return undefined
  const keyed: FormField = { ...field, kind: 'keyed', parts: [], isCompact: true }
  const resource = chosenResource(form, field)
  if (!resource) return { ...keyed, waitsFor: 'Choose the records to see their filters.' }
  const parts = resource.filters
    .map((filter) => ({ filter, part: filterPart(field, filter) }))
    .filter(({ filter, part }) => !isForPrograms(filter) || isInForm(form.draft, part))
  return { ...keyed, parts: parts.map(({ part }) => part) }
}

/** The columns of an export. All of them until the user has seen those of this resource. The field has
 *  no columns without a chosen resource. */
function columnsField(form: Form, field: FormField): FormField {
  const resource = chosenResource(form, field)
  const names = resource ? recordFields(resource).map(([name]) => name) : []
  const shownFor = form.draft.get(kindName(field.path))
  const hasChosen = form.draft.getAll(field.path).some(Boolean)
  if (shownFor === null ? !hasChosen : shownFor !== resource?.slug) {
    form.draft.delete(field.path)
    for (const name of names) form.draft.append(field.path, name)
  }
  form.draft.set(kindName(field.path), resource?.slug ?? '')
  return { ...field, kind: 'columns', schema: { ...field.schema, items: { enum: names } } }
}

/** The resource of the records that the user exports, on which `field` depends. */
function chosenResource(form: Form, field: FormField): Resource | undefined {
  const choice = form.fields.find(isResourceChoice)
  if (!choice) return undefined
  addDependent(form, choice.path, field)
  return resourceByOption(form.draft.get(choice.path))
}

/** The values of `filters` are strings: several values are joined with commas. */
function filterPart({ path }: FormField, { name, schema }: Resource['filters'][number]): FormField {
  const part = toFormField(`${path}.${name}`, schema, { name })
  const kinds: Partial<Record<FieldKind, FieldKind>> = { options: 'joined', lines: 'text' }
  return {
    ...part,
    isFilter: true,
    ...(part.kind === 'time' && { label: timeLabel(label(name)) }),
    kind: kinds[part.kind] ?? part.kind,
  }
}

/** The field with a part for each answer. Unchanged if the form refers to no record with questions,
 *  or the user cannot view such records. */
async function answersField(visit: Visit, form: Form, field: FormField): Promise<FormField> {
  const { fields, draft, current } = form
  const names = [...fields.map(({ path }) => path), ...Object.keys(current ?? {})]
  const questions = findQuestions(names, field.schema)
  if (!questions || !canViewResource(visit.user, questions.resource)) return field
  const { reference, resource, listField } = questions
  addDependent(form, reference, field)
  const id = draft.get(reference) ?? current?.[reference]
  const record =
    typeof id === 'string' && isUuid(id) ? await findRecord(visit, resource, id) : undefined
  const answers = (current?.[field.name] ?? {}) as Record<string, unknown>
  const parts = ((record?.[listField] ?? []) as Record<string, unknown>[]).map((question) =>
    questionPart(field, questions, question, answers),
  )
  // An answer without a question stays in the form, so that it is not lost.
  const otherKeys = new Set([...Object.keys(answers), ...keysIn(draft, field)])
  for (const { name } of parts) otherKeys.delete(name)
  for (const key of otherKeys)
    parts.push(toFormField(`${field.path}.${key}`, valueSchema(field.schema), { name: key }))
  return {
    ...field,
    kind: 'keyed',
    parts,
    ...(record === undefined && { waitsFor: `Choose a ${noun(resource)} to see its questions.` }),
  }
}

/** The resource whose records hold the questions, and the field that refers to such a record. */
interface Questions extends QuestionList {
  /** For example `job_id`. */
  reference: string
  resource: Resource
}

interface QuestionList {
  /** The field with the list of questions, for example `screening_questions`. */
  listField: string
  questionSchema: Schema
  /** The property of a question with the expected answer: one value, or a list of several. */
  expected: string
}

/** Finds the first field in `names` that refers to a record with questions. `schema` is the schema
 *  of the object with the answers. */
function findQuestions(names: string[], schema: Schema): Questions | undefined {
  for (const reference of names) {
    const resource = referencedResource(reference)
    const list = resource && findQuestionList(resource, valueSchema(schema))
    if (list) return { reference, resource, ...list }
  }
  return undefined
}

/** Finds the list of questions: its entries have a `key` and an expected answer. The expected
 *  answer is the property whose `x-by-option` has a schema with the same `oneOf` as an answer. */
function findQuestionList(resource: Resource, answerSchema: Schema): QuestionList | undefined {
  for (const [listField, { items }] of recordFields(resource)) {
    const properties = items?.properties ?? {}
    const expected = Object.keys(properties).find((name) =>
      Object.values(properties[name]?.['x-by-option'] ?? {}).some(
        ({ oneOf }) => answerSchema.oneOf && isDeepStrictEqual(oneOf, answerSchema.oneOf),
      ),
    )
    if (items && 'key' in properties && expected !== undefined)
      return { listField, questionSchema: items, expected }
  }
  return undefined
}

/** The labels of the questions, by key. Empty if `schema` is not the schema of answers, or the
 *  record with the questions is not in `known`. */
export function keyLabels(schema: Schema, item: Item, known: KnownRecords): Record<string, string> {
  const source = findQuestions(Object.keys(item), schema)
  if (!source) return {}
  const record = findKnownRecord(known, source.reference, String(item[source.reference]))
  const questions = (record?.[source.listField] ?? []) as { key: string; label?: string }[]
  return Object.fromEntries(questions.map(({ key, label: text = key }) => [key, text]))
}

/** The field for the answer to a question. Beside its label are the values of the question's properties
 *  with an enum, such as "Must have", except the property that decides the type of the answer. */
function questionPart(
  { path, schema }: FormField,
  { questionSchema: { properties = {} }, expected }: Questions,
  question: Record<string, unknown>,
  answers: Record<string, unknown>,
): FormField {
  const key = String(question.key)
  const typeProperty = properties[expected]?.['x-depends-on']
  const shownOptions = Object.entries(properties)
    .filter(([name, property]) => property.enum && name !== typeProperty)
    .filter(([name]) => question[name] !== undefined)
  const answer = Object.hasOwn(answers, key) ? answers[key] : undefined
  const answerSchema = chooseAnswerSchema(schema, question[expected], answer)
  return {
    ...toFormField(`${path}.${key}`, answerSchema, { name: key }),
    label: String(question.label ?? key),
    hint: '',
    mark: shownOptions.map(([name]) => option(question[name])).join(', '),
  }
}

/** The schema of one answer. `schema` is the schema of the object with all answers. Permits only
 *  one type if all expected answers and the stored answer have it. Otherwise permits all types, so
 *  that the form does not lose a stored answer of another type. */
function chooseAnswerSchema(schema: Schema, expected: unknown, answer: unknown): Schema {
  const anyAnswer = valueSchema(schema)
  const types = new Set([expected].flat().map((one) => typeof one))
  if (answer !== undefined) types.add(typeof answer)
  const [type] = types
  return (types.size === 1 && anyAnswer.oneOf?.find((one) => one.type === type)) || anyAnswer
}

/** The keys with an input in the form. The type of a value has its own input, `PATH.KEY:kind`. */
function keysIn(draft: Draft, field: FormField): string[] {
  return [...draft.keys()]
    .filter((name) => name.startsWith(`${field.path}.`))
    .map((name) => name.slice(field.path.length + 1).replace(/:kind$/, ''))
}
