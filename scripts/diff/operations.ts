import type { Operation, OperationResponse, Parameter } from '../model/operations.ts'
import {
  type Change,
  compareSchemaParts,
  type Editions,
  excuseRemoval,
  type Part,
  type RuleId,
  type Subject,
  toChange,
  toRemoval,
} from './change.ts'

/** Clients do not see the names of path parameters. */
const toKey = ({ method, path }: Operation): string => `${method} ${path.replace(/\{.*?\}/g, '{}')}`

export function compareOperations(editions: Editions): Change[] {
  const { base, revision } = editions
  const before = new Map(base.operations.map((operation) => [toKey(operation), operation]))
  const after = new Map(revision.operations.map((operation) => [toKey(operation), operation]))
  const pathsLeft = new Set([...after.keys()].map(withoutMethod))
  const removed = [...before].filter(([key]) => !after.has(key))
  const added = [...after].filter(([key]) => !before.has(key))
  return [
    ...removed.map(([key, operation]) =>
      removedOperation(editions, operation, pathsLeft.has(withoutMethod(key))),
    ),
    ...added.map(([, operation]) => {
      const subject = { ...editions, concerns: operation.id }
      return toChange(subject, toPart(operation), 'endpoint-added', 'is new')
    }),
    ...[...after].flatMap(([key, operation]) => {
      const old = before.get(key)
      return old ? compareOperation({ ...editions, concerns: operation.id }, old, operation) : []
    }),
  ]
}

const withoutMethod = (key: string): string => key.replace(/^\w+ /, '')

const toPart = ({ method, path, place }: Operation): Part => ({
  name: `${method.toUpperCase()} ${path}`,
  place,
})

function removedOperation(editions: Editions, operation: Operation, isPathLeft: boolean): Change {
  const { id, deprecation } = operation
  return toRemoval(
    { ...editions, concerns: id },
    toPart(operation),
    isPathLeft ? 'api' : 'api-path',
    { isDeprecated: deprecation !== null, sunset: deprecation?.sunset ?? undefined },
  )
}

function compareOperation(subject: Subject, old: Operation, now: Operation): Change[] {
  const changes: Change[] = []
  const add = (id: RuleId, what: string): void =>
    void changes.push(toChange(subject, toPart(now), id, what))
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
  const removed = [...before].filter(([key]) => !after.has(key))
  return [
    ...removed.map(([, old]) => removedParameter(subject, old)),
    ...[...after].flatMap(([key, now]) => {
      const old = before.get(key)
      return old ? compareParameter(subject, old, now) : [addedParameter(subject, now)]
    }),
  ]
}

const parameterPart = ({ in: where, name, place }: Parameter): Part => ({
  name: `the ${where} parameter ${name}`,
  place,
})

function removedParameter(subject: Subject, old: Parameter): Change {
  const id = old.in === 'header' ? 'request-header-parameter-removed' : 'request-parameter-removed'
  const removal = toChange(subject, { ...parameterPart(old), isGone: true }, id, 'is gone')
  return excuseRemoval(subject, old.schema, removal, old.place)
}

function addedParameter(subject: Subject, now: Parameter): Change {
  return now.required
    ? toChange(
        subject,
        parameterPart(now),
        'new-required-request-parameter',
        'is new, and required',
      )
    : toChange(subject, parameterPart(now), 'new-optional-request-parameter', 'is new')
}

function compareParameter(subject: Subject, old: Parameter, now: Parameter): Change[] {
  const part = parameterPart(now)
  const changes: Change[] = []
  if (!old.required && now.required)
    changes.push(toChange(subject, part, 'request-parameter-became-required', 'is required'))
  if (old.required && !now.required)
    changes.push(toChange(subject, part, 'request-parameter-became-optional', 'is optional'))
  const schemas = { name: part.name, old: old.schema, now: now.schema }
  return [...changes, ...compareSchemaParts(subject, 'parameter', schemas)]
}

function compareBodies(subject: Subject, old: Operation, now: Operation): Change[] {
  const name = 'the request body'
  if (old.body && now.body) {
    const schemas = { name, old: old.body.schema, now: now.body.schema }
    return compareSchemaParts(subject, 'requestBody', schemas)
  }
  if (now.body) {
    const part = { name, place: now.body.schema }
    return [toChange(subject, part, 'request-body-added-required', 'is new')]
  }
  if (!old.body) return []
  const part = { name, place: old.body.schema, isGone: true }
  return [toChange(subject, part, 'request-body-removed', 'is gone')]
}

function compareResponses(
  subject: Subject,
  oldOperation: Operation,
  newOperation: Operation,
): Change[] {
  const removed = oldOperation.responses.filter(
    (old) => !newOperation.responses.some(({ status }) => status === old.status),
  )
  return [
    ...removed.map((old) => {
      const part = { ...responsePart(old), isGone: true }
      return toChange(subject, part, `response-${outcome(old)}-status-removed`, 'is gone')
    }),
    ...newOperation.responses.flatMap((now) => {
      const old = oldOperation.responses.find(({ status }) => status === now.status)
      return old
        ? compareResponse(subject, old, now)
        : [toChange(subject, responsePart(now), `response-${outcome(now)}-status-added`, 'is new')]
    }),
  ]
}

const outcome = ({ status }: OperationResponse) => (status < 300 ? 'success' : 'non-success')

const responsePart = ({ status, place }: OperationResponse): Part => ({
  name: `the response ${status}`,
  place,
})

function compareResponse(
  subject: Subject,
  old: OperationResponse,
  now: OperationResponse,
): Change[] {
  return [...compareResponseHeaders(subject, old, now), ...compareResponseBodies(subject, old, now)]
}

function compareResponseHeaders(
  subject: Subject,
  old: OperationResponse,
  now: OperationResponse,
): Change[] {
  const name = (header: string): string => `the header ${header} of ${responsePart(now).name}`
  const removed = Object.entries(old.headers).filter(([header]) => !(header in now.headers))
  const changes = removed.map(([header, { required, schema }]) =>
    toChange(
      subject,
      { name: name(header), place: schema, isGone: true },
      required ? 'required-response-header-removed' : 'optional-response-header-removed',
      'is gone',
    ),
  )
  for (const [header, { required, schema }] of Object.entries(now.headers)) {
    const part = { name: name(header), place: schema }
    const before = old.headers[header]
    if (!before) {
      changes.push(toChange(subject, part, 'response-header-added', 'is new'))
      continue
    }
    if (before.required && !required)
      changes.push(
        toChange(subject, part, 'response-header-became-optional', 'is not always there'),
      )
    if (!before.required && required)
      changes.push(toChange(subject, part, 'response-header-became-required', 'is always there'))
    const schemas = { name: part.name, old: before.schema, now: schema }
    changes.push(...compareSchemaParts(subject, 'responseHeader', schemas))
  }
  return changes
}

function compareResponseBodies(
  subject: Subject,
  old: OperationResponse,
  now: OperationResponse,
): Change[] {
  const { name } = responsePart(now)
  const removed = Object.values(old.content).filter(({ mediaType }) => !(mediaType in now.content))
  return [
    ...removed.map(({ mediaType, schema: place }) =>
      toChange(
        subject,
        { name, place, isGone: true },
        'response-media-type-removed',
        `is never ${mediaType}`,
      ),
    ),
    ...Object.values(now.content).flatMap(({ mediaType, schema }) => {
      const before = old.content[mediaType]?.schema
      if (before)
        return compareSchemaParts(subject, 'responseBody', { name, old: before, now: schema })
      const part = { name, place: schema }
      return [toChange(subject, part, 'response-media-type-added', `can be ${mediaType}`)]
    }),
  ]
}
