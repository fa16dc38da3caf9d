/** One change between two revisions of the contract. */
import type { Contract } from '../model/contract.ts'
import { follow } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import { at, type Place, type Placed } from '../model/source.ts'
import { type Level, RULES } from './rules.ts'
import { type Comparison, compareSchemas } from './schemas.ts'

export interface Change {
  /** In oasdiff's vocabulary. */
  id: string
  level: Level
  /** Where it stands: in the revision, or in the base if it is gone. */
  file: string
  line: number
  isGone: boolean
  /** The operations, by operationId, or the event types that it concerns. */
  concerns: string[]
  /** The part of it that changed, such as ``` `data.[].note` of the response 200 ```. */
  part: string
  /** How, such as `is gone`. */
  what: string
}

export interface Editions {
  base: Contract
  revision: Contract
  /** The day of the comparison, such as `2026-03-01`: what is past its sunset by then may go. */
  today: string
}

/** What is common to all changes of one operation or event. */
export interface Subject extends Editions {
  concerns: string
}

export type RuleId = keyof typeof RULES

export function change(
  { concerns }: Subject,
  id: RuleId,
  place: Place,
  part: string,
  what: string,
  isGone = false,
): Change {
  return { id, level: RULES[id], ...positionOf(place), isGone, concerns: [concerns], part, what }
}

function positionOf({ source, path }: Place): { file: string; line: number } {
  return { file: source.file, line: source.position(path).line }
}

export function ofSchemas(
  subject: Subject,
  name: string,
  old: Placed<Schema>,
  now: Placed<Schema>,
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
      ...positionOf(place),
      isGone,
      concerns: [concerns],
      part,
      what,
    }
    return isGone ? excused(subject, place, found) : found
  })
}

/** What was deprecated and is past its sunset may go: everybody was told. */
export function excused(subject: Subject, schema: Placed, found: Change, holder?: Place): Change {
  const target = follow(subject.base.sources, schema)
  const { isDeprecated, sunset } =
    [schema, target, ...(holder ? [holder] : [])]
      .map(readSchemaDeprecation)
      .find((each) => each.isDeprecated) ?? {}
  if (!isDeprecated || sunset === undefined || sunset > subject.today) return found
  return { ...found, level: 'safe', what: `$found.what, after its sunset of $sunset` }
}

/** An element is deprecated by `deprecated: true`, or, where the format does not allow that, by `x-deprecated-since`. */
export function readSchemaDeprecation({ source, path }: Place): {
  isDeprecated: boolean
  sunset: string | undefined
} {
  const value = (key: string): unknown => at(source.root, [...path, key])
  return {
    isDeprecated: value('deprecated') === true || value('x-deprecated-since') !== undefined,
    sunset: value('x-sunset') as string | undefined,
  }
}
