/** The expected state of records while a sequence of requests changes them. */
import { isDeepStrictEqual } from 'node:util'
import { meetsCondition, requestSchema, responseSchema } from '../words/records.ts'
import { ContractBroken, shorten } from './checks.ts'
import type { LinkedKind, Reference } from './linked-kinds.ts'
import { assertRules, findDifference } from './oracles/stored-values.ts'
import type { ReceivedResponse, Request } from './request.ts'
import { newRequest, type Run } from './test-run.ts'
import { least } from './valid-values.ts'

type Json = Record<string, unknown>

/** A record that the sequence created. */
export interface ModelRecord {
  kind: LinkedKind
  path: string
  fields: Json
  tag: string | null
  /** Tags of earlier versions. */
  oldTags: string[]
  isDeleted: boolean
}

const show = (value: unknown): string => shorten(String(JSON.stringify(value)))

export class RecordModel {
  readonly kinds: LinkedKind[]
  readonly records: ModelRecord[] = []
  /** All requests, and what each does. */
  readonly requests: Request[] = []
  readonly steps: string[] = []
  readonly #run: Run

  constructor(run: Run, kinds: LinkedKind[]) {
    this.#run = run
    this.kinds = kinds
  }

  listLive(kind: LinkedKind): ModelRecord[] {
    return this.records.filter((record) => record.kind === kind && !record.isDeleted)
  }

  /** A body that refers to the latest records of the other kinds. */
  bodyFor(kind: LinkedKind): Json {
    const body = { ...(least(requestSchema(this.#run.contract, kind.create)) as Json) }
    for (const { reference, target } of this.#findTargets(kind))
      body[reference.field] = target.fields.id
    for (const { to, needs } of this.kinds.flatMap(({ references }) => references))
      if (to === kind.name) Object.assign(body, needs)
    return body
  }

  async create(kind: LinkedKind): Promise<void> {
    const targets = this.#findTargets(kind)
    const body = this.bodyFor(kind)
    const refusal = this.#findCreateRefusal(kind, body, targets)
    const request = newRequest(this.#run, kind.create, kind.create.path, { body })
    const response = await this.#send(`create ${kind.name}`, kind.create, request)
    this.#assertOutcome(request, response, refusal ? 422 : kind.create.success.status, refusal)
    if (refusal === undefined)
      this.records.push({
        kind,
        path: response.headers.get('location') ?? '',
        fields: response.json as Json,
        tag: response.headers.get('etag'),
        oldTags: [],
        isDeleted: false,
      })
  }

  /** Whether the references that a create needs have records. */
  canCreate(kind: LinkedKind): boolean {
    const found = this.#findTargets(kind).map(({ reference }) => reference)
    return kind.references.every((reference) => !reference.isRequired || found.includes(reference))
  }

  #findTargets(kind: LinkedKind): { reference: Reference; target: ModelRecord }[] {
    return kind.references.flatMap((reference) => {
      const target = this.records.findLast(
        (record) => record.kind.name === reference.to && !record.isDeleted,
      )
      return target === undefined ? [] : [{ reference, target }]
    })
  }

  #findCreateRefusal(
    kind: LinkedKind,
    body: Json,
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
  async update(record: ModelRecord, body: Json, tag?: string): Promise<void> {
    const { update } = record.kind
    const headers = tag === undefined ? {} : { 'If-Match': tag }
    const request = newRequest(this.#run, update, record.path, { body, headers })
    const isOld = tag !== undefined && tag !== record.tag
    const name = `update ${record.kind.name} ${show(body)}${isOld ? ' of an older version' : ''}`
    const response = await this.#send(name, update, request)
    const refusal = this.findRefusal(record, body)
    const expected = isOld ? 412 : refusal ? 422 : update.success.status
    this.#assertOutcome(request, response, expected, isOld ? 'the version is older' : refusal)
    if (response.status === update.success.status)
      this.#noteUpdate(record, request, response.json as Json, response)
    await this.verify(record)
  }

  /** Why the update is impossible. Undefined: it is possible. */
  findRefusal({ kind, fields }: ModelRecord, body: Json): string | undefined {
    const { states = {}, fixed_when = {} } = kind.words
    for (const [name, value] of Object.entries(body)) {
      if (isDeepStrictEqual(value, fields[name])) continue
      const next = states[name]?.[String(fields[name])]
      if (next !== undefined && !next.includes(value))
        return `${name} ${show(value)} cannot follow ${show(fields[name])}`
      const options = fixed_when[name]
      if (options !== undefined && meetsCondition(fields, options))
        return `${name} cannot change while ${show(options)}`
    }
    return undefined
  }

  #noteUpdate(record: ModelRecord, request: Request, after: Json, { headers }: ReceivedResponse) {
    const { kind, fields, tag } = record
    const sent = JSON.parse(request.body ?? '{}') as Json
    this.#assertFields(request, kind, { ...fields, ...sent }, after)
    assertRules(kind.words, request, after)
    if (tag !== null) record.oldTags.push(tag)
    Object.assign(record, { fields: after, tag: headers.get('etag') })
  }

  /** Fields that the service sets itself may differ. */
  #assertFields(request: Request, kind: LinkedKind, expected: Json, actual: Json): void {
    const { updated, set_when = {} } = kind.words
    const computed = [updated, ...Object.keys(set_when)]
    const { properties = {} } = responseSchema(this.#run.contract, kind.get)
    for (const name of Object.keys(actual)) {
      if (computed.includes(name)) continue
      const difference = findDifference(properties[name] ?? {}, expected[name], actual[name], name)
      if (difference !== undefined) throw this.#broken(request, difference)
    }
  }

  async remove(record: ModelRecord): Promise<void> {
    const { remove, name } = record.kind
    const request = newRequest(this.#run, remove, record.path)
    const referring = this.#listReferring(record)
    const kept = referring.find(({ reference }) => reference.whenDeleted === 'refused')
    const response = await this.#send(`delete ${name}`, remove, request)
    const refusal = kept && `a ${kept.record.kind.name} refers to it`
    this.#assertOutcome(request, response, kept ? 422 : remove.success.status, refusal)
    if (kept === undefined) {
      record.isDeleted = true
      for (const { record: other, reference } of referring) await this.#clear(other, reference)
    }
    await this.verify(record)
    for (const { record: other } of referring) await this.verify(other)
  }

  #listReferring({ kind, fields }: ModelRecord): { record: ModelRecord; reference: Reference }[] {
    return this.records.flatMap((record) =>
      record.isDeleted
        ? []
        : record.kind.references
            .filter(({ to, field }) => to === kind.name && record.fields[field] === fields.id)
            .map((reference) => ({ record, reference })),
    )
  }

  /** The deletion has set the reference to null. */
  async #clear(record: ModelRecord, { field }: Reference): Promise<void> {
    const { request, response } = await this.#read(record)
    const expected = { ...record.fields, [field]: null }
    this.#assertFields(request, record.kind, expected, response.json as Json)
    if (record.tag !== null) record.oldTags.push(record.tag)
    Object.assign(record, { fields: response.json, tag: response.headers.get('etag') })
  }

  /** Throws unless a GET returns the record as the model has it. */
  async verify(record: ModelRecord): Promise<void> {
    const { request, response } = await this.#read(record)
    const actual = response.json as Json
    if (record.isDeleted || isDeepStrictEqual(actual, record.fields)) {
      const tag = response.headers.get('etag')
      if (!record.isDeleted && tag !== record.tag)
        throw this.#broken(request, `the ETag is ${tag} instead of ${record.tag}`)
      return
    }
    const name = Object.keys(actual).find(
      (field) => !isDeepStrictEqual(actual[field], record.fields[field]),
    )
    const [found, expected] = [actual[name ?? ''], record.fields[name ?? '']]
    throw this.#broken(request, `${name} is ${show(found)} instead of ${show(expected)}`)
  }

  async #read(record: ModelRecord) {
    const { get } = record.kind
    const request = newRequest(this.#run, get, record.path)
    const response = await this.#run.send(get.id, request)
    const expected = record.isDeleted ? 404 : get.success.status
    this.#assertOutcome(request, response, expected, record.isDeleted ? 'it is deleted' : undefined)
    return { request, response }
  }

  async #send(step: string, { id }: LinkedKind['get'], request: Request) {
    this.steps.push(step)
    this.requests.push(request)
    return await this.#run.send(id as Parameters<Run['send']>[0], request)
  }

  #assertOutcome(
    request: Request,
    { status }: ReceivedResponse,
    expected: number,
    reason: string | undefined,
  ): void {
    const why = reason === undefined ? '' : `, because ${reason}`
    if (status !== expected)
      throw this.#broken(
        request,
        `${request.method} returned ${status} instead of ${expected}${why}`,
      )
  }

  #broken(request: Request, message: string): ContractBroken {
    return new ContractBroken('sequence', request, message)
  }
}

/** Begins with a record of each kind in `begin`. Adds the steps to the message of a failure. */
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
