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
      if (valueSchema(field) === undefined || draft.has(field.path)) return field
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

function valueSchema({ kind, schema }: FormField): Schema | undefined {
  return kind === 'json' &&
    schema.type === 'object' &&
    typeof schema.additionalProperties === 'object'
    ? schema.additionalProperties
    : undefined
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

async function answersField(
  visit: Visit,
  { fields, draft, current, refreshing }: Form,
  field: FormField,
): Promise<FormField> {
  const values = valueSchema(field) ?? {}
  const names = new Set([...fields.map(({ path }) => path), ...Object.keys(current ?? {})])
  for (const name of names) {
    const resource = referencedResource(name)
    if (!resource || !canViewResource(visit.user, resource)) continue
    const list = findQuestions(resource, values)
    if (!list) continue
    refreshing.add(name)
    const id = draft.get(name) ?? current?.[name]
    const item =
      typeof id === 'string' && isUuid(id) ? await findRecord(visit, resource, id) : undefined
    const answers = (current?.[field.name] ?? {}) as Record<string, unknown>
    const questions = ((item?.[list.name] ?? []) as Record<string, unknown>[]).map((question) =>
      questionPart(field, list, question, answers),
    )
    const questionKeys = new Set(questions.map((part) => part.name))
    // Answers to no question of this job stay in the form, so that they are not lost.
    const others = [...new Set([...Object.keys(answers), ...keysIn(draft, field)])].filter(
      (key) => !questionKeys.has(key),
    )
    const parts = [
      ...questions,
      ...others.map((key) => toFormField(`${field.path}.${key}`, values, { name: key })),
    ]
    return {
      ...field,
      kind: 'keyed',
      parts,
      ...(item === undefined && { waitsFor: capital(noun(resource)) }),
    }
  }
  return field
}

interface Questions {
  /** The field that holds the list. */
  name: string
  item: Schema
  /** The property of an entry with the expected answer: one value, or a list of several. */
  value: string
}

/** The list field whose entries have a `key`, and a property that, for one of its options
 *  (`x-by-option`), has the same alternatives as an answer. */
function findQuestions(resource: Resource, answer: Schema): Questions | undefined {
  for (const [name, { items }] of recordFields(resource)) {
    const properties = items?.properties ?? {}
    const value = Object.keys(properties).find((property) =>
      Object.values(properties[property]?.['x-by-option'] ?? {}).some(
        ({ oneOf }) => answer.oneOf && isDeepStrictEqual(oneOf, answer.oneOf),
      ),
    )
    if (items && 'key' in properties && value !== undefined) return { name, item: items, value }
  }
  return undefined
}

/** The labels of the keys, from the loaded records. */
export function keyLabels(schema: Schema, item: Item, known: KnownRecords): Record<string, string> {
  const values = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : {}
  for (const [name, id] of Object.entries(item)) {
    const resource = referencedResource(name)
    const list = resource && findQuestions(resource, values)
    if (!list) continue
    const questions = (findKnownRecord(known, name, String(id))?.[list.name] ?? []) as {
      key: string
      label?: string
    }[]
    return Object.fromEntries(questions.map(({ key, label: text = key }) => [key, text]))
  }
  return {}
}

/** The field for the answer to a question. Its hint shows the options of the question, such as
 *  "Must have.", but not the one that decides the type of the answer. */
function questionPart(
  { path, schema }: FormField,
  { item, value }: Questions,
  question: Record<string, unknown>,
  answers: Record<string, unknown>,
) {
  const key = String(question.key)
  const values = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : {}
  // If several answers are expected (a list), the answer has the type of each of them.
  const types = new Set([question[value]].flat().map((one) => typeof one))
  const type = types.size === 1 ? [...types][0] : undefined
  // Keeps a stored answer of another type than the question expects.
  const hasOtherType = Object.hasOwn(answers, key) && typeof answers[key] !== type
  const answerSchema = hasOtherType
    ? values
    : (values.oneOf?.find((one) => one.type === type) ?? values)
  const typeProperty = item.properties?.[value]?.['x-depends-on']
  const hints = Object.entries(item.properties ?? {}).filter(
    ([name, { enum: options }]) => options && name !== typeProperty && question[name] !== undefined,
  )
  return {
    ...toFormField(`${path}.${key}`, answerSchema, { name: key }),
    label: String(question.label ?? key),
    hint: hints.map(([name]) => `${option(question[name])}.`).join(' '),
  }
}

/** The keys with a value in the form. An answer also has an entry `PATH.KEY:kind` with the chosen
 *  type. */
function keysIn(draft: Draft, field: FormField): string[] {
  if (!isInForm(draft, field)) return []
  return [...draft.keys()]
    .filter((name) => name.startsWith(`${field.path}.`))
    .map((name) => name.slice(field.path.length + 1).replace(/:kind$/, ''))
}
