/** Two editions of the contract: what changed in operations and events, and what that means. */
import type { Contract } from '../model/contract.ts'
import type { EventMessage } from '../model/events.ts'
import type { Operation, OperationResponse, Parameter } from '../model/operations.ts'
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

interface Editions {
  base: Contract
  revision: Contract
  /** The day of the comparison, such as `2026-03-01`: what is past its sunset by then may go. */
  today: string
}

/** Every change, the worst first. A part that many operations share is one change. */
export function compareContracts(editions: Editions): Change[] {
  const changes = [...compareOperations(editions), ...compareEvents(editions)]
  const merged = new Map<string, Change>()
  for (const change of changes) {
    const key = `${change.id} ${change.file}:${change.line} ${change.isGone} ${change.what}`
    const known = merged.get(key)
    if (known) known.concerns = [...new Set([...known.concerns, ...change.concerns])]
    else merged.set(key, { ...change })
  }
  const order: Level[] = ['breaking', 'risky', 'safe']
  return [...merged.values()].sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level))
}

/** What is common to all changes of one operation or event. */
interface Subject extends Editions {
  concerns: string
}

type RuleId = keyof typeof RULES

function change(
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

/** The name of a path parameter is no part of what a client sees. */
const keyOf = ({ method, path }: Operation): string => `${method} ${path.replace(/\{.*?\}/g, '{}')}`

function compareOperations(editions: Editions): Change[] {
  const before = new Map(editions.base.operations.map((operation) => [keyOf(operation), operation]))
  const after = new Map(
    editions.revision.operations.map((operation) => [keyOf(operation), operation]),
  )
  const pathsLeft = new Set(
    editions.revision.operations.map((operation) => keyOf(operation).replace(/^\w+ /, '')),
  )
  return [
    ...[...before]
      .filter(([key]) => !after.has(key))
      .map(([key, operation]) =>
        removedOperation(editions, operation, pathsLeft.has(key.replace(/^\w+ /, ''))),
      ),
    ...[...after]
      .filter(([key]) => !before.has(key))
      .map(([, operation]) =>
        change(
          { ...editions, concerns: operation.id },
          'endpoint-added',
          operation.place,
          nameOf(operation),
          'is new',
        ),
      ),
    ...[...after].flatMap(([key, operation]) => {
      const old = before.get(key)
      return old ? compareOperation({ ...editions, concerns: operation.id }, old, operation) : []
    }),
  ]
}

const nameOf = ({ method, path }: Operation): string => `${method.toUpperCase()} ${path}`

function removedOperation(editions: Editions, operation: Operation, isPathLeft: boolean): Change {
  const prefix = isPathLeft ? 'api' : 'api-path'
  const subject = { ...editions, concerns: operation.id }
  const { deprecation } = operation
  const name = nameOf(operation)
  if (deprecation === null)
    return change(
      subject,
      `${prefix}-removed-without-deprecation`,
      operation.place,
      name,
      'is gone',
      true,
    )
  const { sunset } = deprecation
  if (sunset === null || sunset > editions.today)
    return change(
      subject,
      `${prefix}-removed-before-sunset`,
      operation.place,
      name,
      `is gone before its sunset: ${sunset ?? 'it has none'}`,
      true,
    )
  return change(
    subject,
    `${prefix}-removed-with-deprecation`,
    operation.place,
    name,
    `is gone, after its sunset of ${sunset}`,
    true,
  )
}

function compareOperation(subject: Subject, old: Operation, now: Operation): Change[] {
  const changes: Change[] = []
  const add = (id: RuleId, what: string): void =>
    void changes.push(change(subject, id, now.place, nameOf(now), what))
  if (old.id !== now.id)
    add(
      'api-operation-id-removed',
      `is called ${now.id} instead of ${old.id}, as generated clients will`,
    )
  if (old.isPublic && !now.isPublic) add('api-security-added', 'needs an API key')
  if (!old.isPublic && now.isPublic) add('api-security-removed', 'needs no API key')
  if (old.permission !== now.permission) {
    if (now.permission !== null)
      add('api-security-scope-added', `needs the permission ${now.permission}`)
    else add('api-security-scope-removed', `does not need the permission ${old.permission}`)
  }
  const perSecond = ({ rateLimit: { limit, windowSeconds } }: Operation): number =>
    limit / windowSeconds
  if (perSecond(old) !== perSecond(now)) {
    const what = `may be called ${now.rateLimit.limit} times in ${now.rateLimit.windowSeconds} s`
    add(
      perSecond(now) < perSecond(old) ? 'api-rate-limit-decreased' : 'api-rate-limit-increased',
      what,
    )
  }
  if (!old.deprecation && now.deprecation)
    add('endpoint-deprecated', `is deprecated, until ${now.deprecation.sunset ?? 'further notice'}`)
  if (old.deprecation && !now.deprecation) add('endpoint-reactivated', 'is no longer deprecated')
  const [sunset, newSunset] = [old.deprecation?.sunset, now.deprecation?.sunset]
  if (sunset && newSunset && newSunset < sunset)
    add(
      'api-sunset-date-changed-too-small',
      `may go on ${newSunset}, before the promised ${sunset}`,
    )
  for (const type of old.emits)
    if (!now.emits.includes(type)) add('api-event-removed', `does not emit ${type}`)
  for (const type of now.emits)
    if (!old.emits.includes(type)) add('api-event-added', `emits ${type}`)
  return [
    ...changes,
    ...compareParameters(subject, old, now),
    ...compareBodies(subject, old, now),
    ...compareResponses(subject, old, now),
  ]
}

/** In a path, by position: their names are ours alone. */
function parametersOf({ path, parameters }: Operation): Map<string, Parameter> {
  const positions = [...path.matchAll(/\{(.*?)\}/g)].map(([, name]) => name)
  return new Map(
    parameters.map((parameter) => {
      const { in: where, name } = parameter
      return [
        where === 'path'
          ? `path ${positions.indexOf(name)}`
          : `${where} ${where === 'header' ? name.toLowerCase() : name}`,
        parameter,
      ]
    }),
  )
}

function compareParameters(
  subject: Subject,
  oldOperation: Operation,
  newOperation: Operation,
): Change[] {
  const [before, after] = [parametersOf(oldOperation), parametersOf(newOperation)]
  const changes: Change[] = []
  for (const [key, old] of before) {
    if (after.has(key)) continue
    const id =
      old.in === 'header' ? 'request-header-parameter-removed' : 'request-parameter-removed'
    changes.push(
      excused(
        subject,
        old.schema,
        change(subject, id, parameterPlace(old), describe(old), 'is gone', true),
        parameterPlace(old),
      ),
    )
  }
  for (const [key, now] of after) {
    const old = before.get(key)
    const add = (id: RuleId, what: string): void =>
      void changes.push(change(subject, id, parameterPlace(now), describe(now), what))
    if (!old) {
      add(
        now.required ? 'new-required-request-parameter' : 'new-optional-request-parameter',
        now.required ? 'is new, and required' : 'is new',
      )
      continue
    }
    if (!old.required && now.required) add('request-parameter-became-required', 'is required')
    if (old.required && !now.required) add('request-parameter-became-optional', 'is optional')
    changes.push(
      ...ofSchemas(
        subject,
        describe(now),
        old.schema,
        now.schema,
        'request',
        'request-parameter',
        'request-parameter',
      ),
    )
  }
  return changes
}

const describe = ({ in: where, name }: Parameter): string => `the ${where} parameter ${name}`
const parameterPlace = ({ schema }: Parameter): Place => ({
  source: schema.source,
  path: schema.path.slice(0, -1),
})

function compareBodies(subject: Subject, old: Operation, now: Operation): Change[] {
  if (old.body && now.body)
    return ofSchemas(
      subject,
      'the request body',
      old.body.schema,
      now.body.schema,
      'request',
      'request-body',
      'request-property',
    )
  if (now.body)
    return [
      change(subject, 'request-body-added-required', now.body.schema, 'the request body', 'is new'),
    ]
  if (old.body)
    return [
      change(subject, 'request-body-removed', old.body.schema, 'the request body', 'is gone', true),
    ]
  return []
}

function compareResponses(
  subject: Subject,
  oldOperation: Operation,
  newOperation: Operation,
): Change[] {
  const changes: Change[] = []
  const kind = ({ status }: OperationResponse) => (status < 300 ? 'success' : 'non-success')
  for (const old of oldOperation.responses)
    if (!newOperation.responses.some(({ status }) => status === old.status))
      changes.push(
        change(
          subject,
          `response-${kind(old)}-status-removed`,
          old.place,
          `the response ${old.status}`,
          'is gone',
          true,
        ),
      )
  for (const now of newOperation.responses) {
    const old = oldOperation.responses.find(({ status }) => status === now.status)
    if (old) changes.push(...compareResponse(subject, old, now))
    else
      changes.push(
        change(
          subject,
          `response-${kind(now)}-status-added`,
          now.place,
          `the response ${now.status}`,
          'is new',
        ),
      )
  }
  return changes
}

function compareResponse(
  subject: Subject,
  old: OperationResponse,
  now: OperationResponse,
): Change[] {
  const name = `the response ${now.status}`
  const changes: Change[] = []
  const add = (id: RuleId, place: Place, part: string, what: string, isGone = false): void =>
    void changes.push(change(subject, id, place, part, what, isGone))
  const partOf = (header: string): string => `the header ${header} of ${name}`
  for (const [header, { required, schema }] of Object.entries(old.headers))
    if (!(header in now.headers))
      add(
        required ? 'required-response-header-removed' : 'optional-response-header-removed',
        schema,
        partOf(header),
        'is gone',
        true,
      )
  for (const [header, { required, schema }] of Object.entries(now.headers)) {
    const before = old.headers[header]
    if (!before) {
      add('response-header-added', schema, partOf(header), 'is new')
      continue
    }
    if (before.required && !required)
      add('response-header-became-optional', schema, partOf(header), 'is not always there')
    if (!before.required && required)
      add('response-header-became-required', schema, partOf(header), 'is always there')
    changes.push(
      ...ofSchemas(
        subject,
        partOf(header),
        before.schema,
        schema,
        'response',
        'response-header',
        'response-header',
      ),
    )
  }
  for (const { mediaType, schema } of Object.values(old.content))
    if (!(mediaType in now.content))
      add('response-media-type-removed', schema, name, `is never ${mediaType}`, true)
  for (const { mediaType, schema } of Object.values(now.content)) {
    const before = old.content[mediaType]?.schema
    if (before)
      changes.push(
        ...ofSchemas(
          subject,
          name,
          before,
          schema,
          'response',
          'response-body',
          'response-property',
        ),
      )
    else add('response-media-type-added', schema, name, `can be ${mediaType}`)
  }
  return changes
}

function compareEvents(editions: Editions): Change[] {
  const { base, revision } = editions
  const changes: Change[] = []
  for (const old of base.events)
    if (!revision.events.some(({ type }) => type === old.type))
      changes.push(removedEvent({ ...editions, concerns: old.type }, old))
  for (const now of revision.events) {
    const subject = { ...editions, concerns: now.type }
    const old = base.events.find(({ type }) => type === now.type)
    if (old) changes.push(...compareEvent(subject, old, now))
    else
      changes.push(
        change(subject, 'event-added', messageOf(now), `the event ${now.type}`, 'is new'),
      )
  }
  return changes
}

const messageOf = ({ payload }: EventMessage): Place => ({
  source: payload.source,
  path: payload.path.slice(0, -1),
})

function removedEvent(subject: Subject, event: EventMessage): Change {
  const place = messageOf(event)
  const name = `the event ${event.type}`
  const { isDeprecated, sunset } = deprecationOf(place)
  if (!isDeprecated)
    return change(subject, 'event-removed-without-deprecation', place, name, 'is gone', true)
  if (sunset === undefined || sunset > subject.today)
    return change(
      subject,
      'event-removed-before-sunset',
      place,
      name,
      `is gone before its sunset: ${sunset ?? 'it has none'}`,
      true,
    )
  return change(
    subject,
    'event-removed-with-deprecation',
    place,
    name,
    `is gone, after its sunset of ${sunset}`,
    true,
  )
}

function compareEvent(subject: Subject, old: EventMessage, now: EventMessage): Change[] {
  const name = `the event ${now.type}`
  const changes: Change[] = []
  const add = (id: RuleId, what: string): void =>
    void changes.push(change(subject, id, messageOf(now), name, what))
  if (old.isSubscribable && !now.isSubscribable)
    add('event-not-subscribable', 'cannot be subscribed to')
  if (!old.isSubscribable && now.isSubscribable) add('event-subscribable', 'can be subscribed to')
  if (!deprecationOf(messageOf(old)).isDeprecated && deprecationOf(messageOf(now)).isDeprecated)
    add('event-deprecated', 'is deprecated')
  return [
    ...changes,
    ...ofSchemas(
      subject,
      name,
      old.payload,
      now.payload,
      'response',
      'event-payload',
      'event-property',
    ),
    ...ofSchemas(
      subject,
      `the headers of ${name}`,
      old.headers,
      now.headers,
      'response',
      'event-headers',
      'event-header',
    ),
  ]
}

function ofSchemas(
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
function excused(subject: Subject, schema: Placed, found: Change, holder?: Place): Change {
  const target = follow(subject.base.sources, schema)
  const { isDeprecated, sunset } =
    [schema, target, ...(holder ? [holder] : [])]
      .map(deprecationOf)
      .find((each) => each.isDeprecated) ?? {}
  if (!isDeprecated || sunset === undefined || sunset > subject.today) return found
  return { ...found, level: 'safe', what: `$found.what, after its sunset of $sunset` }
}

/** An element is deprecated by `deprecated: true`, or, where the format does not allow that, by `x-deprecated-since`. */
function deprecationOf({ source, path }: Place): {
  isDeprecated: boolean
  sunset: string | undefined
} {
  const value = (key: string): unknown => at(source.root, [...path, key])
  return {
    isDeprecated: value('deprecated') === true || value('x-deprecated-since') !== undefined,
    sunset: value('x-sunset') as string | undefined,
  }
}
