/** Fields whose value is an object with keys that the contract leaves open
 *  (`additionalProperties`), because another record decides them: `filters` of an export has the
 *  filters of the exported list, and the answers of an application belong to the questions of its
 *  job. */
import { isDeepStrictEqual } from 'node:util'
import { validate as isUuid } from 'uuid'
import type { Resource } from '../../../generated/resources.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { capital } from '../format.ts'
import type { Visit } from '../page.ts'
import { type Draft, isInForm } from './draft.ts'
import type { FormField } from './field.ts'
import { toFormField } from './fields.ts'
import { label, noun, option } from './labels.ts'
import { findKnownRecord, findRecord, type KnownRecords } from './references.ts'
import {
  canViewResource,
  type Item,
  recordFields,
  referencedResource,
  resourceByOption,
} from './resources.ts'

/** Adds the parts that depend on other fields. `current` is the stored record on an update. */
export async function withKeyedFields(
  visit: Visit,
  fields: FormField[],
  draft: Draft,
  current: Item | undefined,
): Promise<FormField[]> {
  const form: Form = { fields, draft, current, refreshing: new Set() }
  const keyed = await Promise.all(
    fields.map((field) => {
      // A user who typed JSON gets the JSON back.
      if (!hasOpenKeys(field) || draft.has(field.path)) return field
      return filtersField(form, field) ?? answersField(visit, form, field)
    }),
  )
  return keyed.map((field) =>
    form.refreshing.has(field.path) ? { ...field, refreshesForm: true } : field,
  )
}

interface Form {
  fields: FormField[]
  draft: Draft
  current: Item | undefined
  /** Paths of the fields whose values decide which keys another field has. */
  refreshing: Set<string>
}

function hasOpenKeys({ kind, schema }: FormField): boolean {
  return (
    kind === 'json' && schema.type === 'object' && typeof schema.additionalProperties === 'object'
  )
}

/** The schema of the values, whose keys the contract leaves open. */
function openValues({ additionalProperties }: Schema): Schema {
  return typeof additionalProperties === 'object' ? additionalProperties : {}
}

/** Whether the options are resources, as in the `resource` of an export. */
export function isResourceChoice({ kind, schema }: FormField): boolean {
  return (
    kind === 'choice' && (schema.enum ?? []).every((value) => resourceByOption(value) !== undefined)
  )
}

/** Undefined if the field does not hold the filters of a list. */
function filtersField(
  { fields, draft, refreshing }: Form,
  field: FormField,
): FormField | undefined {
  const chosen = fields.find(isResourceChoice)
  if (field.name !== 'filters' || !chosen) return undefined
  refreshing.add(chosen.path)
  const resource = resourceByOption(draft.get(chosen.path))
  if (!resource) return { ...field, kind: 'keyed', parts: [], waitsFor: label(chosen.name) }
  return {
    ...field,
    kind: 'keyed',
    parts: resource.filters.map((filter) => filterPart(field, filter)),
  }
}

/** The values of `filters` are strings: several options are joined with commas. */
function filterPart(
  { path }: FormField,
  { name, description, schema }: Resource['filters'][number],
): FormField {
  const part = toFormField(`${path}.${name}`, schema, { name })
  return { ...part, hint: description, kind: part.kind === 'options' ? 'joined' : part.kind }
}

/** Returns the field unchanged if no record with questions belongs to the form. */
async function answersField(
  visit: Visit,
  { fields, draft, current, refreshing }: Form,
  field: FormField,
): Promise<FormField> {
  const names = [...fields.map(({ path }) => path), ...Object.keys(current ?? {})]
  const questions = findQuestions(names, field.schema)
  if (!questions || !canViewResource(visit.user, questions.resource)) return field
  const { reference, resource, list } = questions
  refreshing.add(reference)
  const id = draft.get(reference) ?? current?.[reference]
  const record =
    typeof id === 'string' && isUuid(id) ? await findRecord(visit, resource, id) : undefined
  const answers = (current?.[field.name] ?? {}) as Record<string, unknown>
  const parts = ((record?.[list] ?? []) as Record<string, unknown>[]).map((question) =>
    questionPart(field, questions, question, answers),
  )
  // Answers to no question of this record stay in the form, so that they are not lost.
  const otherKeys = new Set([...Object.keys(answers), ...keysIn(draft, field)])
  for (const { name } of parts) otherKeys.delete(name)
  for (const key of otherKeys)
    parts.push(toFormField(`${field.path}.${key}`, openValues(field.schema), { name: key }))
  return {
    ...field,
    kind: 'keyed',
    parts,
    ...(record === undefined && { waitsFor: capital(noun(resource)) }),
  }
}

/** The record that holds the questions, and the field that refers to it. */
interface Questions extends QuestionList {
  /** For example `job_id`. */
  reference: string
  resource: Resource
}

interface QuestionList {
  /** The field of the record that holds the list. */
  list: string
  question: Schema
  /** The property of a question with the expected answer: one value, or a list of several. */
  expected: string
}

/** `names`: the fields that may refer to the record. */
function findQuestions(names: string[], answers: Schema): Questions | undefined {
  for (const reference of names) {
    const resource = referencedResource(reference)
    const list = resource && findQuestionList(resource, openValues(answers))
    if (list) return { reference, resource, ...list }
  }
  return undefined
}

/** The list whose entries have a `key`, and a property that, for one of its options
 *  (`x-by-option`), has the same alternatives as an answer. */
function findQuestionList(resource: Resource, answer: Schema): QuestionList | undefined {
  for (const [list, { items }] of recordFields(resource)) {
    const properties = items?.properties ?? {}
    const expected = Object.keys(properties).find((name) =>
      Object.values(properties[name]?.['x-by-option'] ?? {}).some(
        ({ oneOf }) => answer.oneOf && isDeepStrictEqual(oneOf, answer.oneOf),
      ),
    )
    if (items && 'key' in properties && expected !== undefined)
      return { list, question: items, expected }
  }
  return undefined
}

/** The labels of the keys, from the loaded records. */
export function keyLabels(schema: Schema, item: Item, known: KnownRecords): Record<string, string> {
  const found = findQuestions(Object.keys(item), schema)
  if (!found) return {}
  const record = findKnownRecord(known, found.reference, String(item[found.reference]))
  const questions = (record?.[found.list] ?? []) as { key: string; label?: string }[]
  return Object.fromEntries(questions.map(({ key, label: text = key }) => [key, text]))
}

/** The field for the answer to a question. Its hint shows the options of the question, such as
 *  "Must have.", but not the one that decides the type of the answer. */
function questionPart(
  { path, schema }: FormField,
  { question: { properties = {} }, expected }: Questions,
  question: Record<string, unknown>,
  answers: Record<string, unknown>,
): FormField {
  const key = String(question.key)
  const typeProperty = properties[expected]?.['x-depends-on']
  const hints = Object.entries(properties)
    .filter(([name, property]) => property.enum && name !== typeProperty)
    .filter(([name]) => question[name] !== undefined)
  const answer = Object.hasOwn(answers, key) ? answers[key] : undefined
  const answerSchema = chooseAnswerSchema(schema, question[expected], answer)
  return {
    ...toFormField(`${path}.${key}`, answerSchema, { name: key }),
    label: String(question.label ?? key),
    hint: hints.map(([name]) => `${option(question[name])}.`).join(' '),
  }
}

/** The alternative with the type of the expected answers. All alternatives if the expected answers
 *  have several types, or if the stored answer has another type and would be lost. */
function chooseAnswerSchema(answers: Schema, expected: unknown, answer: unknown): Schema {
  const values = openValues(answers)
  const types = new Set([expected].flat().map((one) => typeof one))
  if (answer !== undefined) types.add(typeof answer)
  const [type] = types
  return (types.size === 1 && values.oneOf?.find((one) => one.type === type)) || values
}

/** The keys with a value in the form. An answer also has an entry `PATH.KEY:kind` with the chosen
 *  type. */
function keysIn(draft: Draft, field: FormField): string[] {
  if (!isInForm(draft, field)) return []
  return [...draft.keys()]
    .filter((name) => name.startsWith(`${field.path}.`))
    .map((name) => name.slice(field.path.length + 1).replace(/:kind$/, ''))
}
