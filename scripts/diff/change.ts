/** One change between two revisions of the contract. */
import type { Contract } from '../model/contract.ts'
import { dereference } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import { type Located, type Place, valueAt } from '../model/source.ts'
import { type Level, RULES } from './rules.ts'
import { type Comparison, compareSchemas } from './schemas.ts'

export interface Change {
  /** A rule of oasdiff. */
  id: string
  level: Level
  /** The position in the revision, or in the base if the part is gone. */
  file: string
  line: number
  isGone: boolean
  /** The operationIds or event types that it concerns. */
  concerns: string[]
  /** The changed part, for example ``` `data.[].note` of the response 200 ```. */
  part: string
  /** The predicate of the sentence, for example `is gone`. */
  what: string
}

export interface Editions {
  base: Contract
  revision: Contract
  /** For example `2026-03-01`. Parts whose sunset is not later may be removed. */
  today: string
}

/** The operation or event that a change concerns. */
export interface Subject extends Editions {
  concerns: string
}

export type RuleId = keyof typeof RULES

export function toChange(
  { concerns }: Subject,
  id: RuleId,
  place: Place,
  part: string,
  what: string,
  isGone = false,
): Change {
  return {
    id,
    level: RULES[id],
    ...formatPosition(place),
    isGone,
    concerns: [concerns],
    part,
    what,
  }
}

function formatPosition({ source, path }: Place): { file: string; line: number } {
  return { file: source.file, line: source.position(path).line }
}

export function compareSchemaParts(
  subject: Subject,
  name: string,
  old: Located<Schema>,
  now: Located<Schema>,
  direction: Comparison['direction'],
  schemaSubject: string,
  propertySubject: string,
): Change[] {
  const { base, revision, concerns } = subject
  const findings = compareSchemas({
    base: { sources: base.sources, schema: old },
    revision: { sources: revision.sources, schema: now },
    direction,
    subject: schemaSubject,
    propertySubject,
    path: [],
  })
  return findings.map(({ id, level, path, what, place, isGone }) => {
    const part = path.length === 0 ? name : `\`${path.join('.')}\` of ${name}`
    const found: Change = {
      id,
      level,
      ...formatPosition(place),
      isGone,
      concerns: [concerns],
      part,
      what,
    }
    return isGone ? excuseRemoval(subject, place, found) : found
  })
}

/** Lowers the level of a removal after the sunset of a deprecated part. */
export function excuseRemoval(
  subject: Subject,
  schema: Located,
  found: Change,
  holder?: Place,
): Change {
  const target = dereference(subject.base.sources, schema)
  const { isDeprecated, sunset } =
    [schema, target, ...(holder ? [holder] : [])]
      .map(readSchemaDeprecation)
      .find((each) => each.isDeprecated) ?? {}
  if (!isDeprecated || sunset === undefined || sunset > subject.today) return found
  return { ...found, level: 'safe', what: `${found.what}, after its sunset of ${sunset}` }
}

/** A part is deprecated by `deprecated: true`, or by `x-deprecated-since` where the format has no
 *  `deprecated`. */
export function readSchemaDeprecation({ source, path }: Place): {
  isDeprecated: boolean
  sunset: string | undefined
} {
  const value = (key: string): unknown => valueAt(source.root, [...path, key])
  return {
    isDeprecated: value('deprecated') === true || value('x-deprecated-since') !== undefined,
    sunset: value('x-sunset') as string | undefined,
  }
}
