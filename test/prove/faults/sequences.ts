/** Seeded faults that show only after several requests, or with simultaneous requests. */

import {
  type LinkedKind,
  listLinkedKinds,
} from '../../../scripts/contract/oracles/sequences/sequence-kinds.ts'
import { UNKNOWN_ID } from '../../../scripts/contract/run.ts'
import type { Contract } from '../../../scripts/model/contract.ts'
import type { JsonObject } from '../../../scripts/model/json.ts'
import type { Operation } from '../../../scripts/model/operations.ts'
import { meetsCondition } from '../../../scripts/words/records.ts'
import {
  type ProxyHooks,
  type ProxyRequest,
  type ProxyResponse,
  parseObject,
} from '../faulty-proxy.ts'
import { isFor, isValidInput, pathOf, readRecord, withoutHeaders } from '../hooks.ts'
import { assertFound, faultFactory, type SeededFault } from '../seeded-fault.ts'

const faults = faultFactory('sequences')

export function sequenceFaults(contract: Contract): SeededFault[] {
  const kinds = listLinkedKinds(contract)
  const withStates = kinds.filter(({ words }) => words.states !== undefined)
  const first = assertFound(withStates[0])
  const final = assertFound(withStates.find(hasSeveralFinalStates))
  return [
    ...withStates.flatMap((kind) => [
      ...faults(kind.update, {
        'accepts a forbidden change of state': acceptRefused(kind, changesState(kind)),
      }),
      ...(kind.words.fixed_when
        ? faults(kind.update, { 'changes a fixed field': acceptRefused(kind, changesFixed(kind)) })
        : []),
    ]),
    ...listParents(kinds, 'refused').flatMap((kind) =>
      faults(kind.update, { 'deletes a record that others need': deleteReferred(kind) }),
    ),
    ...listParents(kinds, 'cleared').flatMap((kind) =>
      faults(kind.remove, { 'keeps references to a deleted record': keepReferences(kind, kinds) }),
    ),
    ...withStates
      .slice(0, 2)
      .flatMap((kind) =>
        faults(kind.update, { 'accepts an update of an older version': acceptOlder(kind) }),
      ),
    ...faults(first.update, {
      'stores a part of a refused update': storePart(first),
      'accepts simultaneous updates of one version': loseUpdate(first),
    }),
    ...faults(final.update, { 'accepts simultaneous changes to final states': acceptBoth(final) }),
  ]
}

function hasSeveralFinalStates({ words: { states = {} } }: LinkedKind): boolean {
  return Object.values(states).some(
    (next) => Object.values(next).filter((values) => values.length === 0).length > 1,
  )
}

function listParents(kinds: LinkedKind[], whenDeleted: 'cleared' | 'refused'): LinkedKind[] {
  return kinds.filter(({ name }) =>
    kinds.some(({ references }) =>
      references.some((one) => one.to === name && one.whenDeleted === whenDeleted),
    ),
  )
}

const idOf = (path: string): string => pathOf(path).split('/').at(-1) ?? ''

type Fits = (sent: JsonObject) => boolean

const changesState =
  ({ words: { states = {} } }: LinkedKind): Fits =>
  (sent) =>
    Object.keys(sent).some((name) => name in states)

const changesFixed =
  ({ words: { fixed_when = {} } }: LinkedKind): Fits =>
  (sent) =>
    Object.keys(sent).every((name) => name in fixed_when)

/** Refused updates that fit seem to succeed. Later GETs and updates of the record return the fields
 *  of the refused updates. */
function acceptRefused({ get, update, words }: LinkedKind, fits: Fits): ProxyHooks {
  const changes = new Map<string, JsonObject>()
  let versions = 0
  const show = (path: string, response: ProxyResponse): ProxyResponse => {
    const changed = changes.get(path)
    if (changed === undefined || response.status !== get.success.status) return response
    const record = { ...parseObject(response.body), ...changed }
    for (const [name, condition] of Object.entries(words.set_when ?? {})) {
      const isSet = meetsCondition(record, condition)
      record[name] = isSet ? (record[name] ?? record[words.updated ?? '']) : null
    }
    const headers = { ...response.headers, etag: `"${versions}"` }
    return { ...response, headers, body: JSON.stringify(record) }
  }
  return {
    async respond(request, forward) {
      if (!isFor(get, request) && !isFor(update, request)) return undefined
      const path = pathOf(request.path)
      const response = await forward(request)
      const sent = parseObject(request.body)
      const isRefused = response.status === 422 && isFor(update, request)
      const seemsToSucceed = isRefused && isValidInput(update, sent) && fits(sent)
      if (!seemsToSucceed) return show(path, response)
      const current = await readRecord(request, forward)
      versions += 1
      changes.set(path, { ...changes.get(path), ...sent })
      return show(path, current)
    },
  }
}

/** A refused deletion seems to succeed. */
function deleteReferred({ get, remove, update }: LinkedKind): ProxyHooks {
  const deleted = new Set<string>()
  const isGone = (request: ProxyRequest): boolean =>
    [get, update, remove].some((operation) => isFor(operation, request)) &&
    deleted.has(pathOf(request.path))
  return {
    changeRequest: (request) =>
      isGone(request) ? { path: request.path.replace(idOf(request.path), UNKNOWN_ID) } : {},
    async respond(request, forward) {
      if (!isFor(remove, request)) return undefined
      const response = await forward(request)
      if (response.status !== 422) return response
      const { headers } = await readRecord(request, forward)
      deleted.add(pathOf(request.path))
      const kept = withoutHeaders(headers, 'etag', 'content-type')
      return { status: remove.success.status, headers: kept, body: '' }
    },
  }
}

/** References that the service sets to null keep their last value. */
function keepReferences({ name, remove }: LinkedKind, kinds: LinkedKind[]): ProxyHooks {
  const deleted = new Set<unknown>()
  const last = new Map<string, unknown>()
  const fields = kinds.flatMap(({ create, get, references }) =>
    references
      .filter(({ to }) => to === name)
      .flatMap(({ field }) => [create, get].map((operation) => ({ operation, field }))),
  )
  return {
    changeResponse({ status, headers, body }, request) {
      if (isFor(remove, request) && status === remove.success.status)
        deleted.add(idOf(request.path))
      const found = fields.find(({ operation }) => isFor(operation, request))
      if (!found || status !== found.operation.success.status) return {}
      const record = parseObject(body)
      const key = headers.location ?? pathOf(request.path)
      if (record[found.field] !== null) last.set(key, record[found.field])
      if (!deleted.has(last.get(key))) return {}
      return { body: JSON.stringify({ ...record, [found.field]: last.get(key) }) }
    },
  }
}

/** The fields of a refused update are stored, except for the state. */
function storePart({ update, words: { states = {} } }: LinkedKind): ProxyHooks {
  return {
    async respond(request, forward) {
      if (!isFor(update, request)) return undefined
      const response = await forward(request)
      const sent = parseObject(request.body)
      const others = Object.fromEntries(Object.entries(sent).filter(([name]) => !(name in states)))
      const isRefused = response.status === 422 && isValidInput(update, sent)
      if (isRefused && Object.keys(others).length > 0)
        await forward({ ...request, body: JSON.stringify(others) })
      return response
    },
  }
}

/** The ETag of an older version counts as the current one. */
function acceptOlder({ create, get, update }: LinkedKind): ProxyHooks {
  const tags = new Map<string, Set<string>>()
  return {
    changeRequest: ({ headers, ...request }) => {
      const tag = headers['if-match'] ?? ''
      const isKnown = tags.get(pathOf(request.path))?.has(tag)
      return isKnown ? { headers: withoutHeaders(headers, 'if-match') } : {}
    },
    changeResponse({ headers }, request) {
      const isRecord = [create, get, update].some((operation) => isFor(operation, request))
      const path = headers.location ?? pathOf(request.path)
      const tagsOfPath = tags.get(path) ?? new Set()
      if (isRecord && headers.etag !== undefined) tags.set(path, tagsOfPath.add(headers.etag))
      return {}
    },
  }
}

/** Only the first of simultaneous updates of one record keeps its If-Match. */
function loseUpdate({ update }: LinkedKind): ProxyHooks {
  return onSimultaneous(update, (request, forward) =>
    forward({ ...request, headers: withoutHeaders(request.headers, 'if-match') }),
  )
}

/** Only the first of simultaneous updates of one record can be refused. */
function acceptBoth(kind: LinkedKind): ProxyHooks {
  const { respond } = acceptRefused(kind, changesState(kind))
  return onSimultaneous(kind.update, (request, forward) => respond?.(request, forward))
}

/** Lets `respond` handle each request that arrives during another request to the same path. */
function onSimultaneous(
  operation: Operation,
  respond: NonNullable<ProxyHooks['respond']>,
): ProxyHooks {
  const running = new Set<string>()
  return {
    async respond(request, forward) {
      const path = pathOf(request.path)
      if (!isFor(operation, request)) return undefined
      if (running.has(path)) return respond(request, forward)
      running.add(path)
      return forward(request).finally(() => running.delete(path))
    },
  }
}
