/** Oracle: the deletion of a record clears or keeps the references to it, as `x-when-deleted` says,
 *  and touches no other record. */
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { findEventList } from '../../words/events.ts'
import { assertStatus, ContractBroken, show } from '../contract-broken.ts'
import type { ReceivedResponse, Request } from '../request.ts'
import { type Check, newRequest, type Run } from '../run.ts'
import { sendAndListen } from './events.ts'
import { type LinkedKind, listLinkedKinds, type Reference } from './sequence-kinds.ts'
import { assertSetNow, TIME_PRECISION_MS } from './stored-values.ts'

/** Several, so that a service that changes only the first record is found. */
const DEPENDENTS = 3

/** A reference of another kind to the kind whose records are deleted. */
interface Link {
  kind: LinkedKind
  reference: Reference
}

export function* cascadeChecks(run: Run, operation: Operation): Generator<Check> {
  const kinds = listLinkedKinds(run.contract)
  const target = kinds.find(({ remove }) => remove === operation)
  if (target === undefined) return
  const links = kinds.flatMap((kind) =>
    kind.references
      .filter(({ to }) => to === target.name)
      .map((reference): Link => ({ kind, reference })),
  )
  const cleared = links.filter(({ reference }) => reference.whenDeleted === 'cleared')
  if (cleared.length > 0)
    yield {
      what: 'the references to the deleted record',
      perform: () => assertCleared(run, target, cleared),
    }
  for (const link of links.filter((one) => !cleared.includes(one)))
    yield {
      what: `a ${link.kind.name} whose ${link.reference.field} refers to the record`,
      perform: () => assertDeletionRefused(run, target, link, cleared),
    }
}

/** A record that may refer to the deleted one, before the deletion. */
interface Referrer extends Link {
  read: Request
  before: ReceivedResponse
}

/** A new record that refers to the record at the path. */
async function newReferrer(run: Run, link: Link, path: string): Promise<Referrer> {
  const { kind, reference } = link
  const own = await run.records.newPath(kind.get, { [reference.field]: idIn(path) })
  const read = newRequest(run, kind.get, own)
  return { ...link, read, before: await run.send(kind.get, read) }
}

async function assertCleared(run: Run, target: LinkedKind, links: Link[]): Promise<void> {
  const path = await run.records.newPath(target.get)
  const otherPath = await run.records.newPath(target.get)
  const [dependents, others]: [Referrer[], Referrer[]] = [[], []]
  for (const link of links) {
    for (let count = 0; count < DEPENDENTS; count++)
      dependents.push(await newReferrer(run, link, path))
    others.push(await newReferrer(run, link, otherPath))
  }
  await remove(run, target, path, { status: target.remove.success.status, silent: others })
  for (const dependent of dependents) await assertFieldCleared(run, dependent)
}

async function assertFieldCleared(
  run: Run,
  { kind, reference: { field }, read, before }: Referrer,
): Promise<void> {
  const after = await run.send(kind.get, read)
  const { updated } = kind.words
  const [old, present] = [before.json as JsonObject, after.json as JsonObject]
  const expected: JsonObject = { ...old, [field]: null }
  if (updated) {
    expected[updated] = present[updated]
    if (!(Date.parse(String(present[updated])) > Date.parse(String(old[updated]))))
      throw broken(read, `${field} was cleared, but ${updated} did not become later`)
    assertSetNow(read, after, updated)
  }
  if (!isDeepStrictEqual(present, expected))
    throw broken(read, `after the deletion, GET returned ${show(present)}, not ${show(expected)}`)
  const tag = before.headers.get('etag')
  if (tag !== null && after.headers.get('etag') === tag)
    throw broken(read, `${field} was cleared, but the ETag is still ${tag}`)
  run.tested(kind.get.id, 'x-when-deleted', field)
}

/** Throws unless the service refuses to delete the record until the record that refers to it is
 *  deleted. */
async function assertDeletionRefused(
  run: Run,
  target: LinkedKind,
  link: Link,
  cleared: Link[],
): Promise<void> {
  const path = await run.records.newPath(target.get)
  const blocking = await newReferrer(run, link, path)
  const others: Referrer[] = []
  for (const one of cleared) others.push(await newReferrer(run, one, path))
  await remove(run, target, path, { status: 422, silent: [blocking, ...others] })
  const blockingRemove = link.kind.remove
  await run.send(blockingRemove, newRequest(run, blockingRemove, blocking.read.path))
  await remove(run, target, path, { status: target.remove.success.status, silent: [] })
  for (const other of others) await assertFieldCleared(run, other)
  run.tested(link.kind.get.id, 'x-when-deleted', link.reference.field)
}

interface Outcome {
  status: number
  /** The deletion changes none of these records, and emits no event about them. */
  silent: Referrer[]
}

async function remove(
  run: Run,
  { remove: operation }: LinkedKind,
  path: string,
  { status: expected, silent }: Outcome,
): Promise<void> {
  // Without a delay, the records could have the time of the deletion already.
  await delay(2 * TIME_PRECISION_MS)
  const request = newRequest(run, operation, path)
  const list = findEventList(run.contract)
  const { response, emitted } = list
    ? await sendAndListen(run, list, operation, request)
    : { response: await run.send(operation, request), emitted: [] }
  assertStatus(request, response.status, { check: 'cascade', expected, what: 'DELETE' })
  if (expected !== operation.success.status && emitted.length > 0)
    throw broken(request, `the refused deletion emitted ${emitted.map(({ type }) => type)}`)
  for (const { kind, read, before } of silent) {
    const event = emitted.find(({ resource }) => resource === idIn(read.path))
    if (event) throw broken(request, `emitted ${event.type} of a record that it must not change`)
    const { text } = await run.send(kind.get, read)
    if (text !== before.text) throw broken(read, `the deletion changed ${before.text} to ${text}`)
  }
}

function idIn(path: string): string {
  return path.split('/').at(-1) ?? ''
}

function broken(request: Request, message: string): ContractBroken {
  return new ContractBroken('cascade', request, message)
}
