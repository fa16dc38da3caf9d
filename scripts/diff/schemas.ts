/** Compares two revisions of a schema and follows their references. */
import { isDeepStrictEqual } from 'node:util'
import { findTag, listOptions } from '../model/alternatives.ts'
import { readDeprecationMarks } from '../model/deprecations.ts'
import { dereference } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import { type Located, type Path, type Sources, valueAt } from '../model/source.ts'
import { compareDeprecations } from './deprecations.ts'
import { compareKeywords, show } from './keywords.ts'
import { type Direction, type Level, SCHEMA_RULES, type SchemaChange, toRuleId } from './rules.ts'

/** A schema in one revision of the contract. */
export interface Edition {
  sources: Sources
  schema: Located<Schema>
}

export interface Comparison {
  base: Edition
  revision: Edition
  direction: Direction
  /** Prefix of the rules: `request-body`, `response-property` or `event-payload`. */
  subject: string
  /** Prefix of the rules for its properties. */
  propertySubject: string
  /** The path below the subject, for example `data.0.status`. */
  path: string[]
}

export interface SchemaFinding {
  id: string
  level: Level
  path: string[]
  what: string
  /** In the revision, or in the base if the part is gone. */
  place: Located
  isGone: boolean
}

/** All changes between the two revisions. `ancestors` are the new schemas around this one. */
export function compareSchemas(
  comparison: Comparison,
  ancestors: readonly Schema[] = [],
): SchemaFinding[] {
  const { base, revision } = comparison
  const before = dereference(base.sources, base.schema) as Located<Schema>
  const after = dereference(revision.sources, revision.schema) as Located<Schema>
  const isRecursion = ancestors.includes(after.value)
  if (isRecursion) return []
  const here = {
    ...comparison,
    base: { ...base, schema: before },
    revision: { ...revision, schema: after },
  }
  const isSplitOrJoined = !listAlternatives(before) !== !listAlternatives(after)
  return [
    ...(isSplitOrJoined ? [] : compareNames(here, base.schema.value, revision.schema.value)),
    ...compareTargets(comparison, here, ancestors),
  ]
}

/** The name of a component becomes the name of a type. */
function compareNames(here: Comparison, old: Schema, now: Schema): SchemaFinding[] {
  const [oldName, newName] = [old, now].map(({ $ref }) => $ref?.split('/').at(-1))
  if (oldName === newName) return []
  const format = (name = 'none'): string => name
  const what = `has the schema name ${format(newName)} instead of ${format(oldName)}`
  return [finding(here, 'schema-renamed', what)]
}

/** `comparison` has the schemas as they are written, `here` the targets of their references. */
function compareTargets(
  comparison: Comparison,
  here: Comparison,
  ancestors: readonly Schema[],
): SchemaFinding[] {
  const { base, revision, path } = comparison
  const [before, after] = [here.base.schema, here.revision.schema]
  const [alternatives, newAlternatives] = [listAlternatives(before), listAlternatives(after)]
  // A single schema that replaces alternatives is compared with one of them, which is no recursion.
  const innerAncestors = newAlternatives || !alternatives ? [...ancestors, after.value] : ancestors
  const compareInner = (
    old: Located<Schema>,
    now: Located<Schema>,
    changes: Partial<Comparison> = {},
  ): SchemaFinding[] => {
    const editions = { base: { ...base, schema: old }, revision: { ...revision, schema: now } }
    return compareSchemas({ ...comparison, ...editions, ...changes }, innerAncestors)
  }
  // Each alternative narrows the schema.
  const isSplit =
    !alternatives &&
    newAlternatives
      ?.flatMap((now) => compareInner(base.schema, now))
      .every(({ level }) => level === 'safe' || level === 'code')
  if (isSplit) return [finding(here, 'one-of-split', `is one of ${formatNames(newAlternatives)}`)]
  if (alternatives || newAlternatives)
    return [
      ...(alternatives && newAlternatives ? listKeywordFindings(here) : []),
      ...compareAlternatives(
        here,
        alternatives ?? [base.schema],
        newAlternatives ?? [revision.schema],
        compareInner,
      ),
    ]
  const compareChild = (
    steps: string[],
    name: string,
    subject = comparison.subject,
  ): SchemaFinding[] =>
    compareInner(child(before, steps), child(after, steps), { path: [...path, name], subject })
  const [old, now] = [before.value, after.value]
  const shared = Object.keys(now.properties ?? {}).filter((name) => old.properties?.[name])
  return [
    ...listKeywordFindings(here),
    ...compareProperties(here, old, now),
    ...shared.flatMap((name) =>
      compareChild(['properties', name], name, comparison.propertySubject),
    ),
    ...(old.items && now.items ? compareChild(['items'], '[]') : []),
    ...(isSchema(old.additionalProperties) && isSchema(now.additionalProperties)
      ? compareChild(['additionalProperties'], '*')
      : []),
    ...(now.allOf ?? [])
      .slice(0, old.allOf?.length ?? 0)
      .flatMap((_, index) =>
        compareInner(child(before, ['allOf', index]), child(after, ['allOf', index])),
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

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null
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

/** Pairs equal alternatives first, then those of the same type that are compatible, then others of
 *  the same type. */
function compareAlternatives(
  here: Comparison,
  before: Located<Schema>[],
  after: Located<Schema>[],
  compare: (old: Located<Schema>, now: Located<Schema>) => SchemaFinding[],
): SchemaFinding[] {
  const findings: SchemaFinding[] = []
  const isNewOption = newOptionCheck(here, before, after)
  const left = [...before]
  const unpaired: Located<Schema>[] = []
  const take = (isPair: (schema: Located<Schema>) => boolean): Located<Schema> | undefined => {
    const index = left.findIndex(isPair)
    return index < 0 ? undefined : left.splice(index, 1)[0]
  }
  const typeOf = ({ sources }: Edition, schema: Located<Schema>) =>
    dereference(sources, schema).value.type
  for (const now of after) {
    const old = take((schema) => isDeepStrictEqual(schema.value, now.value))
    if (old) findings.push(...compare(old, now))
    else unpaired.push(now)
  }
  const breaks = (now: Located<Schema>): boolean =>
    left.every((old) => compare(old, now).some(({ level }) => level === 'breaking'))
  const compatibleFirst = [...unpaired.filter((now) => !breaks(now)), ...unpaired.filter(breaks)]
  for (const now of compatibleFirst) {
    const type = typeOf(here.revision, now)
    const old = take((schema) => typeOf(here.base, schema) === type)
    const added = isNewOption(now) ? 'dependent-one-of-added' : 'one-of-added'
    if (old) findings.push(...compare(old, now))
    else findings.push(finding(here, added, `can be ${formatSchema(now.value)}`))
  }
  for (const old of left)
    findings.push(finding(here, 'one-of-removed', `cannot be ${formatSchema(old.value)}`))
  return findings
}

function formatNames(alternatives: Located<Schema>[] = []): string {
  return alternatives.map(({ value }) => formatSchema(value)).join(' or ')
}

/** Tells whether an alternative needs an option of an enumeration that the base does not have. */
function newOptionCheck(
  { base, revision }: Comparison,
  before: Located<Schema>[],
  after: Located<Schema>[],
): (alternative: Located<Schema>) => boolean {
  const toTarget = ({ sources }: Edition, schema: Located<Schema>): Schema =>
    dereference(sources, schema).value
  const resolver =
    (edition: Edition, { source, path }: Located<Schema>) =>
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
  const known = before.flatMap((schema) =>
    listOptions(toTarget(base, schema), tag, resolver(base, schema)),
  )
  return (alternative) => {
    const options = listOptions(toTarget(revision, alternative), tag, resolve)
    return options.length > 0 && options.every((option) => !known.includes(option))
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
  for (const [change, what] of compareDeprecations(
    readDeprecationMarks(old),
    readDeprecationMarks(now),
  ))
    add(change, what)
  return findings
}
