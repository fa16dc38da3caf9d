import type { Operation, OperationResponse, Parameter } from '../model/operations.ts'
import type { Place } from '../model/source.ts'
import {
  type Change,
  compareSchemaParts,
  type Editions,
  excuseRemoval,
  type RuleId,
  type Subject,
  toChange,
} from './change.ts'

/** Clients do not see the names of path parameters. */
const toKey = ({ method, path }: Operation): string => `${method} ${path.replace(/\{.*?\}/g, '{}')}`

export function compareOperations(editions: Editions): Change[] {
  const before = new Map(editions.base.operations.map((operation) => [toKey(operation), operation]))
  const after = new Map(
    editions.revision.operations.map((operation) => [toKey(operation), operation]),
  )
  const pathsLeft = new Set(
    editions.revision.operations.map((operation) => toKey(operation).replace(/^\w+ /, '')),
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
        toChange(
          { ...editions, concerns: operation.id },
          'endpoint-added',
          operation.place,
          formatName(operation),
          'is new',
        ),
      ),
    ...[...after].flatMap(([key, operation]) => {
      const old = before.get(key)
      return old ? compareOperation({ ...editions, concerns: operation.id }, old, operation) : []
    }),
  ]
}

const formatName = ({ method, path }: Operation): string => `${method.toUpperCase()} ${path}`

function removedOperation(editions: Editions, operation: Operation, isPathLeft: boolean): Change {
  const prefix = isPathLeft ? 'api' : 'api-path'
  const subject = { ...editions, concerns: operation.id }
  const { deprecation } = operation
  const name = formatName(operation)
  if (deprecation === null)
    return toChange(
      subject,
      `${prefix}-removed-without-deprecation`,
      operation.place,
      name,
      'is gone',
      true,
    )
  const { sunset } = deprecation
  if (sunset === null || sunset > editions.today)
    return toChange(
      subject,
      `${prefix}-removed-before-sunset`,
      operation.place,
      name,
      `is gone before its sunset: ${sunset ?? 'it has none'}`,
      true,
    )
  return toChange(
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
    void changes.push(toChange(subject, id, now.place, formatName(now), what))
  if (old.id !== now.id)
    add(
      'api-operation-id-removed',
      `has the operationId ${now.id} instead of ${old.id}: generated clients rename their function`,
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
      `can be removed on ${newSunset}, before the promised ${sunset}`,
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

/** Path parameters by position: clients do not see their names. */
function parametersByKey({ path, parameters }: Operation): Map<string, Parameter> {
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
  const [before, after] = [parametersByKey(oldOperation), parametersByKey(newOperation)]
  const changes: Change[] = []
  for (const [key, old] of before) {
    if (after.has(key)) continue
    const id =
      old.in === 'header' ? 'request-header-parameter-removed' : 'request-parameter-removed'
    changes.push(
      excuseRemoval(
        subject,
        old.schema,
        toChange(subject, id, old.place, describe(old), 'is gone', true),
        old.place,
      ),
    )
  }
  for (const [key, now] of after) {
    const old = before.get(key)
    const add = (id: RuleId, what: string): void =>
      void changes.push(toChange(subject, id, now.place, describe(now), what))
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
      ...compareSchemaParts(
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

function compareBodies(subject: Subject, old: Operation, now: Operation): Change[] {
  if (old.body && now.body)
    return compareSchemaParts(
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
      toChange(
        subject,
        'request-body-added-required',
        now.body.schema,
        'the request body',
        'is new',
      ),
    ]
  if (old.body)
    return [
      toChange(
        subject,
        'request-body-removed',
        old.body.schema,
        'the request body',
        'is gone',
        true,
      ),
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
        toChange(
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
        toChange(
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
    void changes.push(toChange(subject, id, place, part, what, isGone))
  const headerPart = (header: string): string => `the header ${header} of ${name}`
  for (const [header, { required, schema }] of Object.entries(old.headers))
    if (!(header in now.headers))
      add(
        required ? 'required-response-header-removed' : 'optional-response-header-removed',
        schema,
        headerPart(header),
        'is gone',
        true,
      )
  for (const [header, { required, schema }] of Object.entries(now.headers)) {
    const before = old.headers[header]
    if (!before) {
      add('response-header-added', schema, headerPart(header), 'is new')
      continue
    }
    if (before.required && !required)
      add('response-header-became-optional', schema, headerPart(header), 'is not always there')
    if (!before.required && required)
      add('response-header-became-required', schema, headerPart(header), 'is always there')
    changes.push(
      ...compareSchemaParts(
        subject,
        headerPart(header),
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
        ...compareSchemaParts(
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
