/** Compares a schema in the base, the older contract, with the same schema in the revision, the
 *  newer contract. Follows references. */
import { isDeepStrictEqual } from 'node:util'
import { findTag, listOptions } from '../model/alternatives.ts'
import { dereference } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import { isObject, type Located, type Path, type Sources, valueAt } from '../model/source.ts'
import { compareDeprecations } from './deprecations.ts'
import { compareKeywords, show } from './keywords.ts'
import { type Direction, type Level, SCHEMA_RULES, type SchemaChange, toRuleId } from './rules.ts'

/** A schema of the base or of the revision. */
interface PlacedSchema {
  sources: Sources
  schema: Located<Schema>
}

export interface Comparison {
  base: PlacedSchema
  revision: PlacedSchema
  direction: Direction
  /** Prefix of the rule IDs, for example `request-body` or `response-property`. */
  subject: string
  /** Prefix of the rule IDs for the properties of the schema. */
  propertySubject: string
  /** The names of properties from the outermost schema to this one. `[]` stands for the items of a
   *  list, `*` for undeclared properties. */
  path: string[]
}

interface SchemaFinding {
  id: string
  level: Level
  path: string[]
  what: string
  /** In the revision, or in the base if the part is gone. */
  place: Located
  isGone: boolean
}

/** All changes of the schema from the base to the revision. `ancestors` are the schemas of the
 *  revision that contain it. */
export function compareSchemas(
  comparison: Comparison,
  ancestors: readonly Schema[] = [],
): SchemaFinding[] {
  const { base, revision } = comparison
  const before = dereference(base.sources, base.schema)
  const after = dereference(revision.sources, revision.schema)
  const isRecursion = ancestors.includes(after.value)
  if (isRecursion) return []
  const here: Comparison = {
    ...comparison,
    base: { ...base, schema: before },
    revision: { ...revision, schema: after },
  }
  const [alternatives, newAlternatives] = [listAlternatives(before), listAlternatives(after)]
  // A single schema that replaces alternatives is compared again, with one of them. So it is not
  // added to its own ancestors: a recursion has no findings.
  const isJoined = alternatives !== undefined && newAlternatives === undefined
  const innerAncestors = isJoined ? ancestors : [...ancestors, after.value]
  const compare: Compare = (old, now, overrides = {}) => {
    const editions = { base: { ...base, schema: old }, revision: { ...revision, schema: now } }
    return compareSchemas({ ...comparison, ...editions, ...overrides }, innerAncestors)
  }
  if (isJoined) return compareAlternatives(here, alternatives, [revision.schema], compare)
  if (newAlternatives && !alternatives)
    return compareSplit(here, base.schema, newAlternatives, compare)
  return [
    ...compareNames(here, base.schema.value, revision.schema.value),
    ...listKeywordFindings(here),
    ...(alternatives && newAlternatives
      ? compareAlternatives(here, alternatives, newAlternatives, compare)
      : compareParts(here, compare)),
  ]
}

/** Compares a schema inside the old schema with one inside the new schema. */
type Compare = (
  old: Located<Schema>,
  now: Located<Schema>,
  overrides?: Partial<Comparison>,
) => SchemaFinding[]

/** Compares the names of components: generated code names types after them. */
function compareNames(here: Comparison, old: Schema, now: Schema): SchemaFinding[] {
  const [oldName, newName] = [old, now].map(({ $ref }) => $ref?.split('/').at(-1))
  if (oldName === newName) return []
  const what = `has the schema name ${newName ?? 'none'} instead of ${oldName ?? 'none'}`
  return [finding(here, 'schema-renamed', what)]
}

/** A single schema becomes alternatives. That is one change if each alternative alone would be a
 *  change of level `safe` or `code`. */
function compareSplit(
  here: Comparison,
  old: Located<Schema>,
  alternatives: Located<Schema>[],
  compare: Compare,
): SchemaFinding[] {
  const isHarmless = alternatives
    .flatMap((now) => compare(old, now))
    .every(({ level }) => level === 'safe' || level === 'code')
  if (!isHarmless) return compareAlternatives(here, [old], alternatives, compare)
  const names = alternatives.map(({ value }) => formatSchema(value)).join(' or ')
  return [finding(here, 'one-of-split', `is one of ${names}`)]
}

/** Compares the schemas of properties, of items, of undeclared properties and of `allOf`. */
function compareParts(here: Comparison, compare: Compare): SchemaFinding[] {
  const { subject, propertySubject, path } = here
  const [before, after] = [here.base.schema, here.revision.schema]
  const [old, now] = [before.value, after.value]
  const compareChild = (steps: string[], name: string, childSubject: string): SchemaFinding[] =>
    compare(child(before, steps), child(after, steps), {
      path: [...path, name],
      subject: childSubject,
    })
  const shared = Object.keys(now.properties ?? {}).filter((name) => old.properties?.[name])
  const haveSchemaOfUndeclared =
    isObject(old.additionalProperties) && isObject(now.additionalProperties)
  return [
    ...compareProperties(here, old, now),
    ...shared.flatMap((name) => compareChild(['properties', name], name, propertySubject)),
    ...(old.items && now.items ? compareChild(['items'], '[]', subject) : []),
    ...(haveSchemaOfUndeclared ? compareChild(['additionalProperties'], '*', subject) : []),
    ...(now.allOf ?? [])
      .slice(0, old.allOf?.length ?? 0)
      .flatMap((_, index) =>
        compare(child(before, ['allOf', index]), child(after, ['allOf', index])),
      ),
  ]
}

function child({ source, path, value }: Located<Schema>, steps: Path): Located<Schema> {
  return { source, path: [...path, ...steps], value: valueAt(value, steps) as Schema }
}

function listAlternatives(schema: Located<Schema>): Located<Schema>[] | undefined {
  const keyword = schema.value.oneOf ? 'oneOf' : 'anyOf'
  return schema.value[keyword]?.map((_, index) => child(schema, [keyword, index]))
}

/** A finding about the schema itself, or about a property of it. */
function finding(
  here: Comparison,
  change: SchemaChange,
  what: string,
  options: { subject?: string; property?: string; isGone?: boolean } = {},
): SchemaFinding {
  const { subject = here.subject, property, isGone = false } = options
  const { schema } = isGone ? here.base : here.revision
  return {
    id: toRuleId(subject, change),
    level: SCHEMA_RULES[change][here.direction],
    path: property === undefined ? here.path : [...here.path, property],
    what,
    place:
      property === undefined
        ? schema
        : {
            ...schema,
            path: [...schema.path, 'properties', property],
            value: schema.value.properties?.[property],
          },
    isGone,
  }
}

function compareProperties(here: Comparison, old: Schema, now: Schema): SchemaFinding[] {
  const [before, after] = [old.properties ?? {}, now.properties ?? {}]
  const isRequired = ({ required = [] }: Schema, name: string): boolean => required.includes(name)
  const kind = (schema: Schema, name: string) =>
    isRequired(schema, name) ? 'required' : 'optional'
  const removed = Object.keys(before).filter((name) => !(name in after))
  const added = Object.keys(after).filter((name) => !(name in before))
  const shared = Object.keys(after).filter((name) => name in before)
  const subject = here.propertySubject
  return [
    ...removed.map((name) =>
      finding(here, `${kind(old, name)}-property-removed`, 'is gone', {
        subject,
        property: name,
        isGone: true,
      }),
    ),
    ...added.map((name) =>
      finding(here, `${kind(now, name)}-property-added`, `is new, and ${kind(now, name)}`, {
        subject,
        property: name,
      }),
    ),
    ...shared
      .filter((name) => isRequired(old, name) !== isRequired(now, name))
      .map((name) =>
        isRequired(now, name)
          ? finding(here, 'became-required', 'is required', { subject, property: name })
          : finding(here, 'became-optional', 'is optional', { subject, property: name }),
      ),
  ]
}

/** Pairs equal alternatives. Then pairs each remaining new one with the first remaining old one of
 *  the same type. The new ones that are no breaking change of some remaining old one go first. */
function compareAlternatives(
  here: Comparison,
  before: Located<Schema>[],
  after: Located<Schema>[],
  compare: Compare,
): SchemaFinding[] {
  const findings: SchemaFinding[] = []
  const isNewOption = newOptionCheck(here, before, after)
  const remaining = [...before]
  const unpaired: Located<Schema>[] = []
  const take = (isPair: (schema: Located<Schema>) => boolean): Located<Schema> | undefined => {
    const index = remaining.findIndex(isPair)
    return index < 0 ? undefined : remaining.splice(index, 1)[0]
  }
  const typeOf = ({ sources }: PlacedSchema, schema: Located<Schema>) =>
    dereference(sources, schema).value.type
  for (const now of after) {
    const old = take((schema) => isDeepStrictEqual(schema.value, now.value))
    if (old) findings.push(...compare(old, now))
    else unpaired.push(now)
  }
  const breaks = (now: Located<Schema>): boolean =>
    remaining.every((old) => compare(old, now).some(({ level }) => level === 'breaking'))
  const compatibleFirst = [...unpaired.filter((now) => !breaks(now)), ...unpaired.filter(breaks)]
  for (const now of compatibleFirst) {
    const type = typeOf(here.revision, now)
    const old = take((schema) => typeOf(here.base, schema) === type)
    const addition = isNewOption(now) ? 'dependent-one-of-added' : 'one-of-added'
    if (old) findings.push(...compare(old, now))
    else findings.push(finding(here, addition, `can be ${formatSchema(now.value)}`))
  }
  for (const old of remaining)
    findings.push(finding(here, 'one-of-removed', `cannot be ${formatSchema(old.value)}`))
  return findings
}

/** Returns a function that checks whether an alternative of `after` is only for values of the tag
 *  that no alternative of `before` lists. The tag is the property that tells the alternatives
 *  apart. */
function newOptionCheck(
  { base, revision }: Comparison,
  before: Located<Schema>[],
  after: Located<Schema>[],
): (alternative: Located<Schema>) => boolean {
  const toTarget = ({ sources }: PlacedSchema, schema: Located<Schema>): Schema =>
    dereference(sources, schema).value
  const resolver =
    (edition: PlacedSchema, { source, path }: Located<Schema>) =>
    (value: Schema): Schema =>
      toTarget(edition, { source, path, value })
  const [first] = after
  if (!first) return () => false
  const resolve = resolver(revision, first)
  const tag = findTag(
    after.map((schema) => toTarget(revision, schema)),
    resolve,
  )
  if (tag === undefined) return () => false
  const oldOptions = before.flatMap((schema) =>
    listOptions(toTarget(base, schema), tag, resolver(base, schema)),
  )
  return (alternative) => {
    const options = listOptions(toTarget(revision, alternative), tag, resolve)
    return options.length > 0 && options.every((option) => !oldOptions.includes(option))
  }
}

function formatSchema({ $ref, type, enum: options }: Schema): string {
  return (
    $ref?.split('/').at(-1) ??
    (options ? options.map(show).join(' or ') : String(type ?? 'something else'))
  )
}

function listKeywordFindings(here: Comparison): SchemaFinding[] {
  const [old, now] = [here.base.schema, here.revision.schema]
  const findings: SchemaFinding[] = []
  const add = (change: SchemaChange, what: string): void =>
    void findings.push(finding(here, change, what))
  compareKeywords(old.value, now.value, add)
  for (const [change, what] of compareDeprecations(old, now)) add(change, what)
  return findings
}
