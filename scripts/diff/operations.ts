import type { Contract } from '../model/contract.ts'
import {
  type MediaType,
  type Operation,
  type OperationResponse,
  type ResponseHeader,
  readResponses,
} from '../model/operations.ts'
import { shapeOf } from '../model/paths.ts'
import { type Place, valueAt } from '../model/source.ts'
import {
  type Change,
  compareSchemaParts,
  compareWordsAt,
  type Editions,
  excuseRemoval,
  type Part,
  type RuleId,
  type Subject,
  toChange,
  toRemoval,
} from './change.ts'
import { compareDeprecations } from './deprecations.ts'
import { compareParameters } from './parameters.ts'
import { compareServers } from './servers.ts'

export function compareOperations(editions: Editions): Change[] {
  const { base, revision } = editions
  const before = new Map(base.operations.map((operation) => [toKey(operation), operation]))
  const after = new Map(revision.operations.map((operation) => [toKey(operation), operation]))
  const remainingPaths = new Set([...after.keys()].map(withoutMethod))
  const removed = [...before].filter(([key]) => !after.has(key))
  const added = [...after].filter(([key]) => !before.has(key))
  return [
    ...removed.map(([key, operation]) =>
      toRemovedOperation(
        editions,
        operation,
        remainingPaths.has(withoutMethod(key)) ? 'api' : 'api-path',
      ),
    ),
    ...added.map(([, operation]) => {
      const subject = { ...editions, concerns: operation.id }
      return toChange(subject, toPart(operation), 'endpoint-added', 'is new')
    }),
    ...[...after].flatMap(([key, operation]) => {
      const old = before.get(key)
      return old ? compareOperation({ ...editions, concerns: operation.id }, old, operation) : []
    }),
    ...compareUnmatched(editions),
  ]
}

/** Without the names of path parameters: clients do not see them. */
function toKey({ method, path }: Operation): string {
  return `${method} ${shapeOf(path)}`
}

function withoutMethod(key: string): string {
  return key.replace(/^\w+ /, '')
}

function toPart({ method, path, place }: Operation): Part {
  return { name: `${method.toUpperCase()} ${path}`, place }
}

/** `prefix` is `api-path` if the revision has no operation with the path. */
function toRemovedOperation(
  editions: Editions,
  operation: Operation,
  prefix: 'api' | 'api-path',
): Change {
  return toRemoval({ ...editions, concerns: operation.id }, toPart(operation), prefix)
}

const OPERATION_RULES = {
  deprecated: 'endpoint-deprecated',
  reactivated: 'endpoint-reactivated',
  'sunset-date-changed-too-small': 'api-sunset-date-changed-too-small',
  'sunset-date-too-small': 'api-sunset-date-too-small',
} as const

function compareOperation(subject: Subject, old: Operation, now: Operation): Change[] {
  const changes: Change[] = []
  const add = (id: RuleId, what: string): void =>
    void changes.push(toChange(subject, toPart(now), id, what))
  if (old.id !== now.id)
    add(
      'api-operation-id-removed',
      `has the operationId ${now.id} instead of ${old.id}: generated clients rename their function`,
    )
  if (old.permission !== now.permission) {
    if (now.permission !== null)
      add('api-security-scope-added', `needs the permission ${now.permission}`)
    else add('api-security-scope-removed', `does not need the permission ${old.permission}`)
  }
  if (perSecond(now) < perSecond(old)) add('api-rate-limit-decreased', describeRateLimit(now))
  if (perSecond(now) > perSecond(old)) add('api-rate-limit-increased', describeRateLimit(now))
  for (const [change, what] of compareDeprecations(old.place, now.place))
    add(OPERATION_RULES[change], what)
  for (const type of old.emits)
    if (!now.emits.includes(type)) add('api-event-removed', `does not emit ${type}`)
  for (const type of now.emits)
    if (!old.emits.includes(type)) add('api-event-added', `emits ${type}`)
  return [
    ...changes,
    ...compareWordsAt(
      subject,
      'the contract',
      toDocument(subject.base),
      toDocument(subject.revision),
    ),
    ...compareOperationWords(subject, old, now),
    ...compareTags(subject, old, now),
    ...compareServers(subject, old, now),
    ...compareParameters(subject, old, now),
    ...compareBodies(subject, old, now),
    ...compareResponses(subject, old.responses, now.responses),
  ]
}

/** Without the conditions of events that only one of the two emits: such an event is a change of its
 *  own. */
function compareOperationWords(subject: Subject, old: Operation, now: Operation): Change[] {
  const isEmittedByBoth = (type: string): boolean =>
    old.emits.includes(type) && now.emits.includes(type)
  return compareWordsAt(subject, toPart(now).name, old.place, now.place).filter(({ place }) => {
    const [word, type] = place.path.slice(now.place.path.length)
    return word !== 'x-emits-when' || isEmittedByBoth(String(type))
  })
}

function toDocument({ openapi }: Contract): Place {
  return { source: openapi, path: [] }
}

/** The responses to requests that match no operation. */
function compareUnmatched(editions: Editions): Change[] {
  const [old, now] = [editions.base, editions.revision].map((contract) => {
    const path = ['x-unmatched-requests']
    return readResponses(contract.sources, { source: contract.openapi, path })
  })
  return compareResponses({ ...editions, concerns: 'unmatched requests' }, old ?? [], now ?? [])
}

function perSecond({ rateLimit }: Operation): number {
  return rateLimit.limit / rateLimit.windowSeconds
}

function describeRateLimit({ rateLimit }: Operation): string {
  return `may be called ${rateLimit.limit} times in ${rateLimit.windowSeconds} s`
}

/** Generated clients name a class after the tag. */
function compareTags(subject: Subject, old: Operation, now: Operation): Change[] {
  if (old.tag === now.tag) return []
  const { openapi, tags } = subject.revision
  const tag = tags.find(({ name }) => name === now.tag)
  const place = tag ? { source: openapi, path: tag.path } : now.place
  const what = `is ${now.tag || 'none'} instead of ${old.tag || 'none'}`
  return [toChange(subject, { name: 'the tag', place }, 'api-tag-changed', what)]
}

const BODY_NAME = 'the request body'

function compareBodies(subject: Subject, old: Operation, now: Operation): Change[] {
  if (old.body && now.body) return compareBody(subject, old.body, now.body)
  if (now.body) {
    const part = { name: BODY_NAME, place: now.body.schema }
    return isRequired(now.body)
      ? [toChange(subject, part, 'request-body-added-required', 'is new, and required')]
      : [toChange(subject, part, 'request-body-added-optional', 'is new')]
  }
  if (!old.body) return []
  const part = { name: BODY_NAME, place: old.body.schema, isGone: true }
  return [toChange(subject, part, 'request-body-removed', 'is gone')]
}

function compareBody(subject: Subject, old: MediaType, now: MediaType): Change[] {
  const part = { name: BODY_NAME, place: toBodyPlace(now) }
  const changes: Change[] = []
  if (!isRequired(old) && isRequired(now))
    changes.push(toChange(subject, part, 'request-body-became-required', 'is required'))
  if (isRequired(old) && !isRequired(now))
    changes.push(toChange(subject, part, 'request-body-became-optional', 'is optional'))
  const schemas = { name: BODY_NAME, old: old.schema, now: now.schema }
  return [...changes, ...compareSchemaParts(subject, 'requestBody', schemas)]
}

function isRequired(body: MediaType): boolean {
  const { source, path } = toBodyPlace(body)
  return valueAt(source.root, [...path, 'required']) === true
}

/** The Request Body Object around `content` and the media type. */
function toBodyPlace({ place: { source, path } }: MediaType): Place {
  return { source, path: path.slice(0, -2) }
}

function compareResponses(
  subject: Subject,
  before: readonly OperationResponse[],
  after: readonly OperationResponse[],
): Change[] {
  const removed = before.filter((old) => !after.some(({ status }) => status === old.status))
  return [
    ...removed.map((old) => {
      const part = { ...toResponsePart(old), isGone: true }
      return toChange(subject, part, `response-${outcomeOf(old)}-status-removed`, 'is gone')
    }),
    ...after.flatMap((now) => {
      const old = before.find(({ status }) => status === now.status)
      return old
        ? compareResponse(subject, old, now)
        : [
            toChange(
              subject,
              toResponsePart(now),
              `response-${outcomeOf(now)}-status-added`,
              'is new',
            ),
          ]
    }),
  ]
}

function outcomeOf({ status }: OperationResponse): 'success' | 'non-success' {
  return status < 300 ? 'success' : 'non-success'
}

function toResponsePart({ status, place }: OperationResponse): Part {
  return { name: `the response ${status}`, place }
}

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
  const toName = ({ name }: ResponseHeader): string =>
    `the header ${name} of ${toResponsePart(now).name}`
  const removed = Object.entries(old.headers).filter(([header]) => !(header in now.headers))
  const changes = removed.map(([, header]) => {
    const { required, schema } = header
    const part = { name: toName(header), place: schema, isGone: true }
    const id = required ? 'required-response-header-removed' : 'optional-response-header-removed'
    return excuseRemoval(
      subject,
      schema,
      toChange(subject, part, id, 'is gone'),
      headerPlace(schema),
    )
  })
  for (const [key, header] of Object.entries(now.headers)) {
    const { required, schema } = header
    const part = { name: toName(header), place: schema }
    const before = old.headers[key]
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
    const places = [headerPlace(before.schema), headerPlace(schema)] as const
    changes.push(
      ...compareWordsAt(subject, part.name, ...places),
      ...compareSchemaParts(subject, 'responseHeader', schemas),
    )
  }
  return changes
}

/** The Header Object around the schema. */
function headerPlace({ source, path }: Place): Place {
  return { source, path: path.slice(0, -1) }
}

function compareResponseBodies(
  subject: Subject,
  old: OperationResponse,
  now: OperationResponse,
): Change[] {
  const { name } = toResponsePart(now)
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
