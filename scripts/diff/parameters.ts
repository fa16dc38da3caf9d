import { locateSchema, type Operation, type Parameter } from '../model/operations.ts'
import { parameterNames } from '../model/paths.ts'
import { dereference } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import type { Located } from '../model/source.ts'
import {
  type Change,
  compareSchemaParts,
  compareWordsAt,
  excuseRemoval,
  type Part,
  type RuleId,
  type Subject,
  toChange,
} from './change.ts'
import { compareDeprecations } from './deprecations.ts'

export function compareParameters(
  subject: Subject,
  oldOperation: Operation,
  newOperation: Operation,
): Change[] {
  const [before, after] = [parametersByKey(oldOperation), parametersByKey(newOperation)]
  const removed = [...before].filter(([key]) => !after.has(key))
  return [
    ...removed.map(([, old]) => toRemovedParameter(subject, old)),
    ...[...after].flatMap(([key, now]) => {
      const old = before.get(key)
      return old ? compareParameter(subject, old, now) : [toAddedParameter(subject, now)]
    }),
  ]
}

function parametersByKey({ path, parameters }: Operation): Map<string, Parameter> {
  const positions = parameterNames(path)
  // Clients do not see the names of path parameters.
  const toKey = ({ in: where, name }: Parameter): string => {
    if (where === 'path') return `path ${positions.indexOf(name)}`
    return where === 'header' ? `header ${name.toLowerCase()}` : `${where} ${name}`
  }
  return new Map(parameters.map((parameter) => [toKey(parameter), parameter]))
}

function toPart({ in: where, name, place }: Parameter): Part {
  return { name: `the ${where} parameter ${name}`, place }
}

function toRemovedParameter(subject: Subject, old: Parameter): Change {
  const part = { ...toPart(old), isGone: true }
  const removal = toChange(subject, part, 'request-parameter-removed', 'is gone')
  return excuseRemoval(subject, old.schema, removal, old.place)
}

function toAddedParameter(subject: Subject, now: Parameter): Change {
  const part = toPart(now)
  return now.required
    ? toChange(subject, part, 'new-required-request-parameter', 'is new, and required')
    : toChange(subject, part, 'new-optional-request-parameter', 'is new')
}

function compareParameter(subject: Subject, old: Parameter, now: Parameter): Change[] {
  const part = toPart(now)
  const changes: Change[] = []
  const add = (id: RuleId, what: string): void =>
    void changes.push(toChange(subject, part, id, what))
  if (!old.required && now.required) add('request-parameter-became-required', 'is required')
  if (old.required && !now.required) add('request-parameter-became-optional', 'is optional')
  if (old.in === 'path' && old.name !== now.name)
    add('api-path-parameter-renamed', `is called ${now.name} instead of ${old.name}`)
  for (const [change, what] of compareDeprecations(old.place, now.place))
    add(`request-parameter-${change}`, what)
  const items = findNewItems(subject, old, now)
  if (items) add('request-parameter-became-list', 'takes several values')
  const schemas = { name: part.name, old: old.schema, now: items ?? now.schema }
  return [
    ...changes,
    ...compareWordsAt(subject, part.name, old.place, now.place),
    ...compareSchemaParts(subject, 'parameter', schemas),
  ]
}

/** The schema of the values if a text became a comma-separated list, whose values are encoded like
 *  the text before: RFC 6570. */
function findNewItems(
  { base, revision }: Subject,
  old: Parameter,
  now: Parameter,
): Located<Schema> | undefined {
  const before = dereference(base.sources, old.schema).value
  const after = dereference(revision.sources, now.schema)
  const { type, items, minItems = 0 } = after.value
  const isList = type === 'array' && items && now.style === 'form' && now.explode === false
  return before.type === 'string' && isList && minItems <= 1
    ? locateSchema(after, 'items')
    : undefined
}
