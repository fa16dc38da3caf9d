/** The expected state of records while a sequence of requests changes them. */
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../../model/json.ts'
import type { Operation } from '../../../model/operations.ts'
import { listOwnEvents } from '../../../words/events.ts'
import { readWord } from '../../../words/read.ts'
import {
  asShownLater,
  meetsCondition,
  requestSchema,
  responseSchema,
} from '../../../words/records.ts'
import { ContractBroken, failuresOf, show } from '../../contract-broken.ts'
import type { ReceivedResponse, Request } from '../../request.ts'
import { newRequest, type Run } from '../../run.ts'
import { minimalValue } from '../../values/valid-values.ts'
import type { ExpectedEvent } from '../events.ts'
import {
  assertLater,
  assertRules,
  assertSetNow,
  findDifference,
  TIME_PRECISION_MS,
} from '../stored-values.ts'
import type { LinkedKind, Reference } from './sequence-kinds.ts'

const broken = failuresOf('sequence')

/** Calls `work` with a model that has a record of each kind in `begin`. Adds the model's steps to
 *  the message of a ContractBroken. */
export async function withModel(
  run: Run,
  { kinds, begin }: { kinds: LinkedKind[]; begin: LinkedKind[] },
  work: (model: RecordModel) => Promise<void>,
): Promise<void> {
  const model = new RecordModel(run, kinds)
  try {
    for (const kind of begin) await model.create(kind)
    await work(model)
  } catch (error) {
    if (!(error instanceof ContractBroken)) throw error
    const { check, request, message } = error
    const steps = `${message}. The steps: ${model.steps.join('; ')}`
    throw new ContractBroken(check, request, steps, model.requests)
  }
}

/** A record that the sequence created. */
export interface ModelRecord {
  kind: LinkedKind
  path: string
  fields: JsonObject
  /** The latest ETag. */
  tag: string | null
  /** ETags of earlier versions. */
  oldTags: string[]
  isDeleted: boolean
}

/** The status if the service must refuse a request, and why it must. Undefined: it must not. */
type Refusal = [status: number, reason: string | undefined]

/** Sends requests, and computes what each must do to the records. Throws ContractBroken if a
 *  response or a record differs from the computed one. */
export class RecordModel {
  readonly kinds: LinkedKind[]
  readonly records: ModelRecord[] = []
  /** The creates, updates and deletions, also those that the service must refuse. */
  readonly requests: Request[] = []
  /** Describes each of the `requests`. */
  readonly steps: string[] = []
  /** What the requests must have emitted. */
  readonly events: ExpectedEvent[] = []
  readonly #run: Run

  constructor(run: Run, kinds: LinkedKind[]) {
    this.#run = run
    this.kinds = kinds
  }

  listLive(kind: LinkedKind): ModelRecord[] {
    return this.records.filter((record) => record.kind === kind && !record.isDeleted)
  }

  /** A body for a create. It refers to the latest records of the other kinds, and has the values
   *  that a record needs before other records can refer to it. */
  bodyFor(kind: LinkedKind, targets = this.#findTargets(kind)): JsonObject {
    const body = { ...(minimalValue(requestSchema(this.#run.contract, kind.create)) as JsonObject) }
    for (const { reference, target } of targets) body[reference.field] = target.fields.id
    for (const { to, needs } of this.kinds.flatMap(({ references }) => references))
      if (to === kind.name) Object.assign(body, needs)
    return body
  }

  /** `choice` is a number that chooses the records to which the new one refers. Returns undefined if
   *  the service must refuse the request. */
  async create(kind: LinkedKind, choice = 0): Promise<ModelRecord | undefined> {
    const targets = this.#findTargets(kind, choice)
    const body = this.bodyFor(kind, targets)
    const reason = this.#findCreateRefusal(kind, body, targets)
    const request = newRequest(this.#run, kind.create, kind.create.path, { body })
    const response = await this.#step(`create ${kind.name}`, kind.create, request)
    assertOutcome(kind.create, request, response, [422, reason])
    if (reason !== undefined) return undefined
    const record: ModelRecord = {
      kind,
      path: response.headers.get('location') ?? '',
      fields: asShownLater(this.#run.contract, kind.create, response.json as JsonObject),
      tag: response.headers.get('etag'),
      oldTags: [],
      isDeleted: false,
    }
    this.records.push(record)
    this.#expectEvents(kind.create, record)
    return record
  }

  /** The events about the record. `before` is the record before an update. */
  #expectEvents(operation: Operation, { fields }: ModelRecord, before?: JsonObject): void {
    const own = listOwnEvents(this.#run.contract, operation, { before, after: fields })
    this.events.push(...own.map(({ type }) => ({ type, resource: String(fields.id) })))
  }

  /** The events of the deletion about a record that referred to the deleted one. */
  #expectCascade({ emits }: Operation, { kind, fields }: ModelRecord): void {
    const typeOf = (name = '') =>
      this.#run.contract.events.find(({ type }) => type === name)?.resourceType
    for (const type of emits)
      if (typeOf(type) === typeOf(kind.create.emits[0]))
        this.events.push({ type, resource: String(fields.id) })
  }

  /** Whether there is a record for each required reference of the kind. */
  canCreate(kind: LinkedKind): boolean {
    const found = this.#findTargets(kind).map(({ reference }) => reference)
    return kind.references.every((reference) => !reference.isRequired || found.includes(reference))
  }

  /** The choice 0 stands for the latest records. An optional reference may get none. */
  #findTargets(kind: LinkedKind, choice = 0): { reference: Reference; target: ModelRecord }[] {
    return kind.references.flatMap((reference) => {
      const live = this.records
        .filter((record) => record.kind.name === reference.to && !record.isDeleted)
        .toReversed()
      const target = live[choice % (live.length + (reference.isRequired ? 0 : 1))]
      return target === undefined ? [] : [{ reference, target }]
    })
  }

  #findCreateRefusal(
    kind: LinkedKind,
    body: JsonObject,
    targets: { reference: Reference; target: ModelRecord }[],
  ): string | undefined {
    const unfit = targets.find(({ reference: { needs }, target }) =>
      Object.entries(needs).some(([name, value]) => target.fields[name] !== value),
    )
    if (unfit)
      return `${unfit.reference.field} must refer to a record with ${show(unfit.reference.needs)}`
    const { unique } = kind.words
    const isTaken =
      unique !== undefined &&
      this.listLive(kind).some(({ fields }) => unique.every((name) => fields[name] === body[name]))
    return isTaken ? `${unique.join(' and ')} must be unique` : undefined
  }

  /** Updates the record. `tag` is the value of If-Match. */
  async update(record: ModelRecord, body: JsonObject, tag?: string): Promise<void> {
    const { update } = record.kind
    const headers = tag === undefined ? {} : { 'If-Match': tag }
    const request = newRequest(this.#run, update, record.path, { body, headers })
    const isOld = tag !== undefined && tag !== record.tag
    const name = `update ${record.kind.name} ${show(body)}${isOld ? ' of an older version' : ''}`
    const response = await this.#step(name, update, request)
    const refusal: Refusal = isOld
      ? [412, 'the version is older']
      : [422, this.findRefusal(record, body)]
    assertOutcome(update, request, response, refusal)
    if (refusal[1] === undefined) {
      const before = record.fields
      this.#assertFields(request, record, { ...before, ...body }, response)
      assertRules(this.#run, update, request, response.json as JsonObject)
      noteVersion(record, response)
      this.#expectEvents(update, record, before)
    }
    await this.verify(record)
  }

  /** Why the service must refuse the update. Undefined: the service must accept it. */
  findRefusal({ kind, fields }: ModelRecord, body: JsonObject): string | undefined {
    const { states = {}, fixed_when = {} } = kind.words
    for (const [name, value] of Object.entries(body)) {
      if (isDeepStrictEqual(value, fields[name])) continue
      const next = states[name]?.[String(fields[name])]
      if (next !== undefined && !next.includes(value))
        return `${name} ${show(value)} cannot follow ${show(fields[name])}`
      const condition = fixed_when[name]
      if (condition !== undefined && meetsCondition(fields, condition))
        return `${name} cannot change while ${show(condition)}`
    }
    return undefined
  }

  /** Throws unless the fields of the response are as expected. Skips fields that the service sets
   *  itself. */
  #assertFields(
    request: Request,
    { kind }: ModelRecord,
    expected: JsonObject,
    { json }: ReceivedResponse,
  ): void {
    const { updated, set_when = {} } = kind.words
    const setByService = [updated, ...Object.keys(set_when)]
    const { properties = {} } = responseSchema(this.#run.contract, kind.get)
    for (const [name, actual] of Object.entries(json as JsonObject)) {
      if (setByService.includes(name)) continue
      const difference = findDifference(properties[name] ?? {}, expected[name], actual, name)
      if (difference !== undefined) throw broken(request, difference)
    }
  }

  async remove(record: ModelRecord): Promise<void> {
    const { remove, name } = record.kind
    const request = newRequest(this.#run, remove, record.path)
    const referring = this.#listReferring(record)
    const blocking = referring.find(({ reference }) => reference.whenDeleted === 'refused')
    // Without a delay, the referring records could have the time of the deletion already.
    if (referring.length > 0) await delay(2 * TIME_PRECISION_MS)
    const response = await this.#step(`delete ${name}`, remove, request)
    const reason = blocking && `a ${blocking.record.kind.name} refers to it`
    assertOutcome(remove, request, response, [422, reason])
    for (const { record: other, reference } of referring)
      this.#run.tested(other.kind.get.id, 'x-when-deleted', reference.field)
    if (blocking === undefined) {
      record.isDeleted = true
      this.#expectEvents(remove, record)
      for (const { record: other, reference } of referring) {
        await this.#assertCleared(other, reference)
        this.#expectCascade(remove, other)
      }
    }
    await this.verify(record)
    for (const { record: other } of referring) await this.verify(other)
  }

  #listReferring({ kind, fields }: ModelRecord): { record: ModelRecord; reference: Reference }[] {
    const live = this.records.filter(({ isDeleted }) => !isDeleted)
    return live.flatMap((record) =>
      record.kind.references
        .filter(({ to, field }) => to === kind.name && record.fields[field] === fields.id)
        .map((reference) => ({ record, reference })),
    )
  }

  /** Throws unless `field` is null in a new version of the record, after the record that it referred
   *  to is deleted. Puts the new version into the model. */
  async #assertCleared(record: ModelRecord, { field }: Reference): Promise<void> {
    const { request, response } = await this.#read(record)
    const { fields, tag } = record
    const { get, words } = record.kind
    this.#assertFields(request, record, { ...fields, [field]: null }, response)
    const present = response.json as JsonObject
    assertRules(this.#run, get, request, present)
    const { updated } = words
    if (updated !== undefined) {
      assertLater(request, updated, fields, present)
      assertSetNow(request, response, updated)
    }
    if (tag !== null && response.headers.get('etag') === tag)
      throw broken(request, `${field} was cleared, but the ETag is still ${tag}`)
    noteVersion(record, response)
  }

  /** Throws unless a GET returns the record that the model has, or 404 for a deleted one. */
  async verify(record: ModelRecord): Promise<void> {
    const { request, response } = await this.#read(record)
    if (record.isDeleted) return
    const actual = response.json as JsonObject
    const { fields, tag } = record
    const name = Object.keys({ ...fields, ...actual }).find(
      (field) => !isDeepStrictEqual(actual[field], fields[field]),
    )
    if (name !== undefined)
      throw broken(request, `${name} is ${show(actual[name])} instead of ${show(fields[name])}`)
    const actualTag = response.headers.get('etag')
    if (actualTag !== tag) throw broken(request, `the ETag is ${actualTag} instead of ${tag}`)
  }

  async #read({ kind: { get }, path, isDeleted }: ModelRecord) {
    const request = newRequest(this.#run, get, path)
    const response = await this.#run.send(get, request)
    assertOutcome(get, request, response, [404, isDeleted ? 'it is deleted' : undefined])
    return { request, response }
  }

  /** Every other step uses the key of another user of the account, where that user may. */
  async #step(name: string, operation: Operation, request: Request): Promise<ReceivedResponse> {
    const { key, noPermissionKey } = this.#run.target
    const isForAll = operation.permission === null && !readWord(operation.place, 'x-forbidden-with')
    const usesOther = isForAll && this.steps.length % 2 === 1
    const sent = { ...request, key: (usesOther ? noPermissionKey : undefined) ?? key }
    this.steps.push(name)
    this.requests.push(sent)
    return await this.#run.send(operation, sent)
  }
}

function assertOutcome(
  { success }: Operation,
  request: Request,
  { status }: ReceivedResponse,
  [refused, reason]: Refusal,
): void {
  const expected = reason === undefined ? success.status : refused
  const why = reason === undefined ? '' : `, because ${reason}`
  if (status !== expected)
    throw broken(request, `${request.method} returned ${status} instead of ${expected}${why}`)
}

/** Puts the version that the response has into the model. */
function noteVersion(record: ModelRecord, { json, headers }: ReceivedResponse): void {
  if (record.tag !== null) record.oldTags.push(record.tag)
  Object.assign(record, { fields: json, tag: headers.get('etag') })
}
