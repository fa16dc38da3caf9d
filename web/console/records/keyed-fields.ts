/** Objects whose keys the contract leaves open, and something else lists: the filters of an export are those of the list of what it holds, the
 *  answers of an application are to the questions of its job. Which is which is told by the shape of the schemas, not by their names alone. */
import { isDeepStrictEqual } from 'node:util'
import { validate as isUuid } from 'uuid'
import type { Resource } from '../../../generated/resources.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import type { Visit } from '../page.ts'
import { type Draft, isInForm } from './draft.ts'
import type { Field } from './field.ts'
import { fieldOf } from './fields.ts'
import { capital, label, noun, option } from './labels.ts'
import { findItem, type Known, knownItem } from './references.ts'
import { fieldsOf, type Item, maySee, namedBy, referencedBy } from './resources.ts'

/** The fields with what depends on the rest of the form. `current` is the record that is changed. */
export async function withKeys(
  visit: Visit,
  fields: Field[],
  draft: Draft,
  current: Item | undefined,
): Promise<Field[]> {
  const drivers = new Set<string>()
  const drivenBy = (path: string): void => void drivers.add(path)
  const all = await Promise.all(
    fields.map((field) => {
      // Whoever writes JSON gets JSON again.
      if (valueSchema(field) === undefined || draft.has(field.path)) return field
      return (
        filtersField(field, fields, draft, drivenBy) ??
        answersField(visit, field, fields, draft, current, drivenBy)
      )
    }),
  )
  return all.map((field) => (drivers.has(field.path) ? { ...field, isDriver: true } : field))
}

function valueSchema({ kind, schema }: Field): Schema | undefined {
  return kind === 'json' &&
    schema.type === 'object' &&
    typeof schema.additionalProperties === 'object'
    ? schema.additionalProperties
    : undefined
}

/** Is it a choice among resources, as that of what an export holds? */
export function isOfResources({ kind, schema }: Field): boolean {
  return kind === 'choice' && (schema.enum ?? []).every((value) => namedBy(value) !== undefined)
}

/** Undefined when the field has nothing to do with a list. */
function filtersField(
  field: Field,
  fields: Field[],
  draft: Draft,
  drivenBy: (path: string) => void,
): Field | undefined {
  const chosen = fields.find(isOfResources)
  if (field.name !== 'filters' || !chosen) return undefined
  drivenBy(chosen.path)
  const resource = namedBy(draft.get(chosen.path))
  if (!resource) return { ...field, kind: 'keyed', parts: [], waitsFor: label(chosen.name) }
  return {
    ...field,
    kind: 'keyed',
    parts: resource.filters.map((filter) => filterPart(field, filter)),
  }
}

/** In an object of texts, options are one text with commas. */
function filterPart(
  { path }: Field,
  { name, description, schema }: Resource['filters'][number],
): Field {
  const part = fieldOf(`${path}.${name}`, schema, false, name)
  return { ...part, hint: description, kind: part.kind === 'options' ? 'joined' : part.kind }
}

async function answersField(
  visit: Visit,
  field: Field,
  fields: Field[],
  draft: Draft,
  current: Item | undefined,
  drivenBy: (path: string) => void,
): Promise<Field> {
  const values = valueSchema(field) ?? {}
  const names = new Set([...fields.map(({ path }) => path), ...Object.keys(current ?? {})])
  for (const name of names) {
    const resource = referencedBy(name)
    const list =
      resource && maySee(visit.user, resource) ? questionsOf(resource, values) : undefined
    if (!resource || !list) continue
    drivenBy(name)
    const id = draft.get(name) ?? current?.[name]
    const item =
      typeof id === 'string' && isUuid(id) ? await findItem(visit, resource, id) : undefined
    const given = (current?.[field.name] ?? {}) as Record<string, unknown>
    const questions = ((item?.[list.name] ?? []) as Record<string, unknown>[]).map((question) =>
      questionPart(field, list, question, given),
    )
    const asked = new Set(questions.map((part) => part.name))
    const others = [...new Set([...Object.keys(given), ...keysIn(draft, field)])].filter(
      (key) => !asked.has(key),
    )
    const parts = [
      ...questions,
      ...others.map((key) => fieldOf(`${field.path}.${key}`, values, false, key)),
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
  /** Of the list in the record. */
  name: string
  item: Schema
  /** The part of each whose values are of the same kind as the answers. */
  value: string
}

/** The list of a record whose entries have a key, and a value such as those that the object takes by key. */
function questionsOf(resource: Resource, values: Schema): Questions | undefined {
  for (const [name, { items }] of fieldsOf(resource)) {
    const properties = items?.properties ?? {}
    const value = Object.keys(properties).find(
      (part) => values.oneOf && isDeepStrictEqual(properties[part]?.oneOf, values.oneOf),
    )
    if (items && 'key' in properties && value !== undefined) return { name, item: items, value }
  }
  return undefined
}

/** What the keys of such an object stand for, as far as the records that are known say it. */
export function keyLabels(schema: Schema, item: Item, known: Known): Record<string, string> {
  const values = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : {}
  for (const [name, id] of Object.entries(item)) {
    const resource = referencedBy(name)
    const list = resource && questionsOf(resource, values)
    if (!list) continue
    const questions = (knownItem(known, name, String(id))?.[list.name] ?? []) as {
      key: string
      label?: string
    }[]
    return Object.fromEntries(questions.map(({ key, label: text = key }) => [key, text]))
  }
  return {}
}

/** A question: what it is called, and the type of its answer. Beside it what it says by an enumeration, such as that it must be met. */
function questionPart(
  { path, schema }: Field,
  { item, value }: Questions,
  question: Record<string, unknown>,
  given: Record<string, unknown>,
) {
  const key = String(question.key)
  const values = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : {}
  const type = typeof question[value]
  // An answer of another type than is asked for must be able to stay.
  const isOther = Object.hasOwn(given, key) && typeof given[key] !== type
  const own = isOther ? values : (values.oneOf?.find((one) => one.type === type) ?? values)
  const hints = Object.entries(item.properties ?? {}).filter(
    ([name, { enum: options }]) => options && question[name] !== undefined,
  )
  return {
    ...fieldOf(`${path}.${key}`, own, false, key),
    label: String(question.label ?? key),
    hint: hints.map(([name]) => `${option(question[name])}.`).join(' '),
  }
}

/** The keys that a form holds values for. */
function keysIn(draft: Draft, field: Field): string[] {
  if (!isInForm(draft, field)) return []
  return [...draft.keys()]
    .filter((name) => name.startsWith(`${field.path}.`))
    .map((name) => name.slice(field.path.length + 1).replace(/:kind$/, ''))
}
