/** One change of an operation or event from the base, the older contract, to the revision, the
 *  newer contract. */
import type { Contract } from '../model/contract.ts'
import { readDeprecationMarks } from '../model/deprecations.ts'
import { dereference } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import { type Located, type Place, valueAt } from '../model/source.ts'
import { type Level, RULES } from './rules.ts'
import { type Comparison, compareSchemas } from './schemas.ts'
import { compareWords } from './words.ts'

export interface Change {
  /** The name of the rule, see rules.ts. */
  id: string
  level: Level
  /** In the revision, or in the base if the part is gone. */
  place: Place
  isGone: boolean
  /** The operationId or event type. */
  concerns: string
  /** The changed part, for example ``` `data.[].note` of the response 200 ```: the subject of a
   *  sentence. */
  part: string
  /** The predicate of that sentence, for example `is gone`. */
  what: string
}

export interface Editions {
  base: Contract
  revision: Contract
  /** For example `2026-03-01`. A part may be removed on the day of its sunset, or later. */
  today: string
}

/** The operation or event that a change concerns. */
export interface Subject extends Editions {
  concerns: string
}

export type RuleId = keyof typeof RULES

/** A part of the contract. `name` becomes the `part` of a Change. */
export interface Part {
  name: string
  place: Place
  isGone?: boolean
}

export function toChange({ concerns }: Subject, part: Part, id: RuleId, what: string): Change {
  const { name, place, isGone = false } = part
  return { id, level: RULES[id], place, isGone, concerns, part: name, what }
}

/** The changes of the words (keys that begin with `x-`) of an object. */
export function compareWordsAt(
  { base, concerns }: Subject,
  part: string,
  old: Place,
  { source, path }: Place,
): Change[] {
  const [before, after] = [valueAt(old.source.root, old.path), valueAt(source.root, path)]
  return compareWords(base.sources, before, after).map((found) => {
    const place = { source, path: [...path, ...found.path] }
    const { id, level, what } = found
    return { id, level, place, isGone: false, concerns, part, what }
  })
}

/** The change of an operation or event that is gone. */
export function toRemoval(
  subject: Subject,
  part: Part,
  prefix: 'api' | 'api-path' | 'event',
): Change {
  const { isDeprecated, sunset } = readDeprecationMarks(part.place)
  const gone = { ...part, isGone: true }
  if (!isDeprecated)
    return toChange(subject, gone, `${prefix}-removed-without-deprecation`, 'is gone')
  if (sunset === undefined || sunset > subject.today) {
    const what = sunset ? `is gone before its sunset of ${sunset}` : 'is gone, but had no sunset'
    return toChange(subject, gone, `${prefix}-removed-before-sunset`, what)
  }
  const what = `is gone, after its sunset of ${sunset}`
  return toChange(subject, gone, `${prefix}-removed-with-deprecation`, what)
}

/** `subject` and `propertySubject`: the prefixes of the rules for a schema and its properties. */
const SCHEMA_KINDS = {
  parameter: {
    direction: 'request',
    subject: 'request-parameter',
    propertySubject: 'request-parameter',
  },
  requestBody: {
    direction: 'request',
    subject: 'request-body',
    propertySubject: 'request-property',
  },
  responseHeader: {
    direction: 'response',
    subject: 'response-header',
    propertySubject: 'response-header',
  },
  responseBody: {
    direction: 'response',
    subject: 'response-body',
    propertySubject: 'response-property',
  },
  eventPayload: {
    direction: 'response',
    subject: 'event-payload',
    propertySubject: 'event-property',
  },
  eventHeaders: {
    direction: 'response',
    subject: 'event-headers',
    propertySubject: 'event-header',
  },
} as const satisfies Record<string, Omit<Comparison, 'base' | 'revision'>>

interface SchemaPart {
  name: string
  old: Located<Schema>
  now: Located<Schema>
}

export function compareSchemaParts(
  subject: Subject,
  kind: keyof typeof SCHEMA_KINDS,
  { name, old, now }: SchemaPart,
): Change[] {
  const { base, revision, concerns } = subject
  const findings = compareSchemas({
    base: { sources: base.sources, schema: old },
    revision: { sources: revision.sources, schema: now },
    ...SCHEMA_KINDS[kind],
  })
  return findings.map(({ id, level, path, what, place, isGone }) => {
    const part = path.length === 0 ? name : `\`${path.join('.')}\` of ${name}`
    const change: Change = { id, level, place, isGone, concerns, part, what }
    return isGone ? excuseRemoval(subject, place, change) : change
  })
}

/** Lowers the level of a removal to safe after the sunset of the removed part. The sunset can be at
 *  the schema, at the target of its reference, or at `owner`, the object around the schema. */
export function excuseRemoval(
  subject: Subject,
  schema: Located,
  removal: Change,
  owner?: Place,
): Change {
  const target = dereference(subject.base.sources, schema)
  const places = owner ? [schema, target, owner] : [schema, target]
  const marks = places.map(readDeprecationMarks).find(({ isDeprecated }) => isDeprecated)
  const sunset = marks?.sunset
  if (sunset === undefined || sunset > subject.today) return removal
  return { ...removal, level: 'safe', what: `${removal.what}, after its sunset of ${sunset}` }
}
