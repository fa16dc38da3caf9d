/** Compares a schema in the base, the older contract, with the same schema in the revision, the
 *  newer contract. Follows references. */
import { isDeepStrictEqual } from 'node:util'
import { findTag, listOptions } from '../model/alternatives.ts'
import { dereference } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import { isObject, type Located, type Sources } from '../model/source.ts'
import { childOf, type MergedSchema, mergeAllOf, unmerged } from './all-of.ts'
import { compareDeprecations } from './deprecations.ts'
import { compareKeywords, show } from './keywords.ts'
import { type Direction, type Level, SCHEMA_RULES, type SchemaChange, toRuleId } from './rules.ts'
import { compareWords } from './words.ts'

/** A schema of the base or of the revision. */
interface PlacedSchema<T = Located<Schema>> {
  sources: Sources
  schema: T
}

export interface Comparison<T = Located<Schema>> {
  base: PlacedSchema<T>
  revision: PlacedSchema<T>
  direction: Direction
  /** Prefix of the rule IDs, for example `request-body` or `response-property`. */
  subject: string
  /** Prefix of the rule IDs for the properties of the schema. */
  propertySubject: string
  /** How many comparisons wait for this one, to choose how they pair their alternatives. Default: 0. */
  waiting?: number
}

/** The comparison of two schemas whose references are followed. */
type Here = Comparison<MergedSchema>

interface SchemaFinding {
  id: string
  level: Level
  /** The names of properties from the compared schema to the changed one. `[]` stands for the items
   *  of a list, `*` for undeclared properties. */
  path: string[]
  what: string
  /** In the revision, or in the base if the part is gone. */
  place: Located
  isGone: boolean
}

/** A schema inside the old schema, to compare with one inside the new schema. */
interface Pair {
  old: Located<Schema>
  now: Located<Schema>
  /** As in a finding. */
  path: string[]
  subject: string
}

/** In the order in which they are listed. */
type Items = readonly (SchemaFinding | Pair)[]

interface Outcome {
  /** The same for all comparisons of two schemas, whatever their names and subjects. */
  pair: object
  items: Items
}

/** Deeper inside, alternatives are paired in their order. A limit keeps the time linear, and the
 *  stack short. */
const MAX_WAITING = 3

/** How often the findings of one pair are listed: twice, so that compare.ts can tell that the pair
 *  has several names. A limit keeps the time linear. */
const MAX_VISITS = 2

/** A path: the path before its last step, and this step. */
type Trail = readonly (Trail | string)[]

/** All changes of the schema from the base to the revision. Recursive schemas are compared once.
 *  Not a recursive function: a chain of schemas can be longer than the stack. */
export function compareSchemas(comparison: Comparison): SchemaFinding[] {
  const findings: SchemaFinding[] = []
  const ancestors = new Set<object>()
  const visits = new Map<Outcome, number>()
  const visit = (here: Comparison, trail: Trail): void => {
    const outcome = compareOnce(here)
    const count = visits.get(outcome) ?? 0
    if (ancestors.has(outcome.pair) || count === MAX_VISITS) return
    ancestors.add(outcome.pair)
    visits.set(outcome, count + 1)
    tasks.push(() => ancestors.delete(outcome.pair))
    for (const item of outcome.items.toReversed())
      tasks.push(() => {
        const steps = [trail, ...item.path]
        if ('id' in item) findings.push({ ...item, path: (steps as string[]).flat(Infinity) })
        else visit(toComparison(here, item), item.path.length === 0 ? trail : steps)
      })
  }
  const tasks = [() => visit(comparison, [])]
  while (tasks.length > 0) tasks.pop()?.()
  return findings
}

/** The findings of a pair, by which `here` chooses how to pair its alternatives. */
function lookInside(here: Here, old: Located<Schema>, now: Located<Schema>): SchemaFinding[] {
  const { waiting = 0 } = here
  return compareSchemas({ ...toComparison(here, pair(here, old, now)), waiting: waiting + 1 })
}

function mayLookInside({ waiting = 0 }: Here): boolean {
  return waiting < MAX_WAITING
}

function toComparison(here: Comparison, { old, now, subject }: Pair): Comparison {
  const { base, revision } = here
  return {
    ...here,
    base: { ...base, schema: old },
    revision: { ...revision, schema: now },
    subject,
  }
}

/** By the old and the new schema: operations share most schemas. */
const outcomes = new WeakMap<Schema, WeakMap<Schema, Map<string, Outcome>>>()

function compareOnce(comparison: Comparison): Outcome {
  const { base, revision, direction, subject, propertySubject } = comparison
  const before = dereference(base.sources, base.schema)
  const after = dereference(revision.sources, revision.schema)
  // A schema can be true or false, which no map can have as a weak key.
  const old: Schema = Object(before.value)
  const now: Schema = Object(after.value)
  const byRevision = outcomes.get(old) ?? new WeakMap()
  const pair: Map<string, Outcome> = byRevision.get(now) ?? new Map()
  outcomes.set(old, byRevision.set(now, pair))
  const names = [base, revision].map(({ schema }) => schema.value.$ref)
  const key = [direction, subject, propertySubject, ...names].join(' ')
  const known = pair.get(key)
  if (known) return known
  const outcome: Outcome = { pair, items: [] }
  // First without items: inside a recursive schema, the schema itself has no findings.
  pair.set(key, outcome)
  outcome.items = compareTargets(comparison, before, after)
  return outcome
}

function compareTargets(
  comparison: Comparison,
  before: Located<Schema>,
  after: Located<Schema>,
): Items {
  const { base, revision } = comparison
  const merged = [mergeAllOf(base.sources, before), mergeAllOf(revision.sources, after)]
  const [old, now] = merged.some(({ value }) => value.allOf)
    ? [unmerged(before), unmerged(after)]
    : (merged as [MergedSchema, MergedSchema])
  const here: Here = {
    ...comparison,
    base: { ...base, schema: old },
    revision: { ...revision, schema: now },
  }
  const [alternatives, newAlternatives] = [listAlternatives(old), listAlternatives(now)]
  if (alternatives && !newAlternatives)
    return compareAlternatives(here, alternatives, [revision.schema])
  if (newAlternatives && !alternatives) return compareSplit(here, base.schema, newAlternatives)
  return [
    ...compareNames(here, base.schema.value, revision.schema.value),
    ...listKeywordFindings(here),
    ...compareParts(here),
    ...compareAlternatives(here, alternatives ?? [], newAlternatives ?? []),
  ]
}

/** Compares the names of components: generated code names types after them. */
function compareNames(here: Here, old: Schema, now: Schema): SchemaFinding[] {
  const [oldName, newName] = [old, now].map(({ $ref }) => $ref?.split('/').at(-1))
  if (oldName === newName) return []
  const what = `has the schema name ${newName ?? 'none'} instead of ${oldName ?? 'none'}`
  return [finding(here, 'schema-renamed', what)]
}

/** A single schema becomes alternatives. That is one change if each alternative alone would be a
 *  change of level `safe` or `code`. */
function compareSplit(here: Here, old: Located<Schema>, alternatives: Located<Schema>[]): Items {
  const isHarmless = (now: Located<Schema>): boolean =>
    lookInside(here, old, now).every(({ level }) => level === 'safe' || level === 'code')
  if (!mayLookInside(here) || !alternatives.every(isHarmless))
    return compareAlternatives(here, [old], alternatives)
  const names = alternatives.map(({ value }) => formatSchema(value)).join(' or ')
  return [finding(here, 'one-of-split', `is one of ${names}`)]
}

/** Compares the schemas of properties, of items, of undeclared properties and of `allOf`. */
function compareParts(here: Here): Items {
  const { subject, propertySubject } = here
  const [before, after] = [here.base.schema, here.revision.schema]
  const [old, now] = [before.value, after.value]
  const pairChild = (steps: string[], step: string, childSubject: string): Pair => ({
    old: childOf(before, steps),
    now: childOf(after, steps),
    path: [step],
    subject: childSubject,
  })
  const shared = Object.keys(now.properties ?? {}).filter((name) => old.properties?.[name])
  const haveSchemaOfUndeclared =
    isObject(old.additionalProperties) && isObject(now.additionalProperties)
  return [
    ...compareProperties(here, old, now),
    ...shared.map((name) => pairChild(['properties', name], name, propertySubject)),
    ...(old.items && now.items ? [pairChild(['items'], '[]', subject)] : []),
    ...(haveSchemaOfUndeclared ? [pairChild(['additionalProperties'], '*', subject)] : []),
    ...compareAllOf(here),
  ]
}

/** Pairs equal schemas of `allOf`, and the others in their order. */
function compareAllOf(here: Here): Items {
  const [before, after] = [here.base, here.revision].map(({ schema }) => listParts(schema, 'allOf'))
  const { pairs, removed, added } = pairEqual(before ?? [], after ?? [])
  return [
    ...pairs.map(([old, now]) => pair(here, old, now)),
    ...Array.from({ length: Math.max(removed.length, added.length) }, (_, index) => {
      const [old, now] = [removed[index], added[index]]
      if (old && now) return pair(here, old, now)
      return now
        ? finding(here, 'constraint-added', 'has a further schema in allOf')
        : finding(here, 'constraint-removed', 'has fewer schemas in allOf')
    }),
  ]
}

function listAlternatives(schema: MergedSchema): Located<Schema>[] | undefined {
  return listParts(schema, schema.value.oneOf ? 'oneOf' : 'anyOf')
}

function listParts(schema: MergedSchema, keyword: 'allOf' | 'anyOf' | 'oneOf') {
  return schema.value[keyword]?.map((_, index) => childOf(schema, [keyword, index]))
}

function pair({ subject }: Here, old: Located<Schema>, now: Located<Schema>): Pair {
  return { old, now, path: [], subject }
}

/** A finding about the schema itself, or about a property of it. */
function finding(
  here: Here,
  change: SchemaChange,
  what: string,
  options: { subject?: string; property?: string; isGone?: boolean } = {},
): SchemaFinding {
  const { subject = here.subject, property, isGone = false } = options
  const { schema } = isGone ? here.base : here.revision
  return {
    id: toRuleId(subject, change),
    level: SCHEMA_RULES[change][here.direction],
    path: property === undefined ? [] : [property],
    what,
    place: property === undefined ? schema : childOf(schema, ['properties', property]),
    isGone,
  }
}

function compareProperties(here: Here, old: Schema, now: Schema): SchemaFinding[] {
  const [before, after] = [old.properties ?? {}, now.properties ?? {}]
  const isRequired = ({ required = [] }: Schema, name: string): boolean => required.includes(name)
  const kind = (schema: Schema, name: string) =>
    isRequired(schema, name) ? 'required' : 'optional'
  const removed = Object.keys(before).filter((name) => !(name in after))
  const added = Object.keys(after).filter((name) => !(name in before))
  // Another schema, of `allOf` for example, can have a required property.
  const names = new Set([old, now].flatMap(({ required = [] }) => required))
  const shared = [...names].filter((name) => name in before === name in after)
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
  here: Here,
  before: Located<Schema>[],
  after: Located<Schema>[],
): Items {
  const isNewOption = newOptionCheck(here, before, after)
  const { pairs, removed: remaining, added: unpaired } = pairEqual(before, after)
  const outcome: (SchemaFinding | Pair)[] = pairs.map(([old, now]) => pair(here, old, now))
  const typeOf = ({ sources }: { sources: Sources }, schema: Located<Schema>) =>
    dereference(sources, schema).value.type
  const breaks = (now: Located<Schema>): boolean =>
    remaining.every((old) => lookInside(here, old, now).some(({ level }) => level === 'breaking'))
  const hasChoice = unpaired.length > 1 && mayLookInside(here)
  const breaking = new Set(hasChoice ? unpaired.filter(breaks) : [])
  const compatibleFirst = [...unpaired.filter((now) => !breaking.has(now)), ...breaking]
  for (const now of compatibleFirst) {
    const type = typeOf(here.revision, now)
    const old = take(remaining, (schema) => typeOf(here.base, schema) === type)
    const addition = isNewOption(now) ? 'dependent-one-of-added' : 'one-of-added'
    if (old) outcome.push(pair(here, old, now))
    else outcome.push(finding(here, addition, `can be ${formatSchema(now.value)}`))
  }
  for (const old of remaining)
    outcome.push(finding(here, 'one-of-removed', `cannot be ${formatSchema(old.value)}`))
  return outcome
}

function pairEqual(before: readonly Located<Schema>[], after: readonly Located<Schema>[]) {
  const removed = [...before]
  const added: Located<Schema>[] = []
  const pairs: [Located<Schema>, Located<Schema>][] = []
  for (const now of after) {
    const old = take(removed, ({ value }) => isDeepStrictEqual(value, now.value))
    if (old) pairs.push([old, now])
    else added.push(now)
  }
  return { pairs, removed, added }
}

/** Removes the first item that is wanted from the list, and returns it. */
function take<T>(list: T[], isWanted: (item: T) => boolean): T | undefined {
  const index = list.findIndex(isWanted)
  return index < 0 ? undefined : list.splice(index, 1)[0]
}

/** Returns a function that checks whether an alternative of `after` is only for values of the tag
 *  that no alternative of `before` lists. The tag is the property that tells the alternatives
 *  apart. */
function newOptionCheck(
  { base, revision }: Here,
  before: Located<Schema>[],
  after: Located<Schema>[],
): (alternative: Located<Schema>) => boolean {
  const toTarget = ({ sources }: { sources: Sources }, schema: Located<Schema>): Schema =>
    dereference(sources, schema).value
  const resolver =
    (edition: { sources: Sources }, { source, path }: Located<Schema>) =>
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

function listKeywordFindings(here: Here): SchemaFinding[] {
  const [old, now] = [here.base.schema, here.revision.schema]
  const findings: SchemaFinding[] = []
  const add = (change: SchemaChange, what: string): void =>
    void findings.push(finding(here, change, what))
  compareKeywords(old.value, now.value, here.direction, add)
  for (const [change, what] of compareDeprecations(old, now)) add(change, what)
  for (const { path, ...found } of compareWords(here.base.sources, old.value, now.value))
    findings.push({ ...found, path: [], place: childOf(now, path), isGone: false })
  return findings
}
