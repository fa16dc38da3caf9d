/** The records that a test run creates for its requests, and their deletion. */
import type { Contract } from '../model/contract.ts'
import type { JsonObject } from '../model/json.ts'
import type { Operation } from '../model/operations.ts'
import { findBatch } from '../words/batches.ts'
import { readListWords } from '../words/lists.ts'
import { readPointer } from '../words/read.ts'
import { requestSchema } from '../words/records.ts'
import { ContractBroken, shorten } from './contract-broken.ts'
import { exampleFile } from './file-request.ts'
import {
  depthOf,
  type Kind,
  kindAt,
  listCollections,
  listKinds,
  listReferredKinds,
  matchesTemplate,
} from './record-kinds.ts'
import { type ReceivedResponse, type Request, toSearch } from './request.ts'
import { minimalValue } from './values/valid-values.ts'

/** A record that the service did not create. */
interface FailedRecord {
  /** The operation that should have created or returned it. */
  operation: Operation
  error: ContractBroken
}

type Send = (request: Request) => Promise<ReceivedResponse>

/** A record to delete, with a key that may delete it. */
interface CreatedRecord {
  path: string
  key: string
}

/** Creates one record of each kind, as far as the service permits. Requests that change no record
 *  share these records. */
export async function prepareRecords(
  contract: Contract,
  send: Send,
  key: string,
): Promise<TestRecords> {
  const records = new TestRecords(contract, send, key)
  await records.createShared()
  return records
}

/** Methods that need a record throw ContractBroken if the service refused to create it. */
export class TestRecords {
  readonly #contract: Contract
  readonly #send: Send
  readonly #key: string
  readonly #kinds: Kind[]
  /** The kind to which a field of the request bodies refers, by the name of the field. */
  readonly #referredKinds: Map<string, Kind>
  /** Values that a record needs before another one can refer to it: `x-refers-with` of the
   *  references. */
  readonly #neededValues = new Map<Kind, JsonObject>()
  /** The IDs of the shared records. */
  readonly #shared = new Map<Kind, string>()
  /** Why the kind has no shared record. */
  readonly #refused = new Map<Kind, ContractBroken>()
  /** The records to delete, oldest first. */
  #created: CreatedRecord[] = []

  constructor(contract: Contract, send: Send, key: string) {
    this.#contract = contract
    this.#send = send
    this.#key = key
    this.#kinds = listKinds(contract)
    this.#referredKinds = listReferredKinds(contract, this.#kinds)
    for (const kind of this.#kinds)
      for (const [field, schema] of Object.entries(this.#fieldsOf(kind))) {
        const referred = this.#referredKinds.get(field)
        if (referred)
          this.#neededValues.set(referred, {
            ...this.#neededValues.get(referred),
            ...(schema['x-refers-with'] as JsonObject | undefined),
          })
      }
  }

  /** Creates the shared records. Nested kinds come after the kinds above them. Within a level,
   *  kinds that no request can create come last: the service creates their records after requests
   *  for other kinds. */
  async createShared(): Promise<void> {
    const ordered = this.#kinds.toSorted(
      (a, b) =>
        depthOf(a) - depthOf(b) || Number(a.create === undefined) - Number(b.create === undefined),
    )
    for (const kind of ordered)
      try {
        this.#shared.set(kind, await this.createNew(kind))
      } catch (error) {
        if (!(error instanceof ContractBroken)) throw error
        this.#refused.set(kind, error)
      }
  }

  /** The shared records that do not exist, and why. */
  get failed(): FailedRecord[] {
    const reported = new Set<ContractBroken>()
    return [...this.#refused].flatMap(([{ create, list }, error]) => {
      const operation = create ?? list
      // A nested record fails with the error of the record above it.
      if (operation === undefined || reported.has(error)) return []
      reported.add(error)
      return [{ operation, error }]
    })
  }

  /** The name of a kind that the operation needs and that has no record. Undefined if the operation
   *  can be tested. */
  missingFor(operation: Operation): string | undefined {
    const inPath = listCollections(operation.path).map(({ collection }) =>
      kindAt(this.#kinds, collection),
    )
    const fields = Object.keys(requestSchema(this.#contract, operation).properties ?? {})
    const inBody = fields.flatMap((field) => this.#referredKinds.get(field) ?? [])
    return [...inPath, ...inBody].find((kind) => this.#refused.has(kind))?.name
  }

  /** A valid body with the required fields and references to existing records. Undefined if the
   *  operation takes none. */
  async validBody(operation: Operation): Promise<JsonObject | undefined> {
    if (operation.body === null) return undefined
    const batch = findBatch(this.#contract, operation)
    if (batch) {
      const data = await this.validBody(batch.create)
      return { items: [{ action: 'create', data }] }
    }
    const body = minimalValue(requestSchema(this.#contract, operation))
    return await this.withReferences(operation, body as JsonObject)
  }

  /** Whether the operation changes a record that no request can create, such as a delivery. The state of
   *  such a record changes on its own. */
  isFound({ method, path }: Operation): boolean {
    const collection = listCollections(path).at(-1)?.collection
    if (method === 'get' || collection === undefined) return false
    const { create, cause } = kindAt(this.#kinds, collection)
    return create === undefined && cause === undefined
  }

  /** A copy of the body with references to existing records. */
  async withReferences(operation: Operation, body: JsonObject): Promise<JsonObject> {
    const { required = [] } = requestSchema(this.#contract, operation)
    const filled = { ...body }
    for (const [field, value] of Object.entries(body)) {
      const kind = this.#referredKinds.get(field)
      // A required reference may have to be unique, so it gets a new record.
      if (kind !== undefined && typeof value === 'string')
        filled[field] = required.includes(field) ? await this.createNew(kind) : this.sharedId(kind)
    }
    return filled
  }

  /** The kind of the records whose IDs the field has. Undefined if the field is no reference. */
  kindOf(field: string): Kind | undefined {
    return this.#referredKinds.get(field)
  }

  /** The ID of the shared record. */
  sharedId(kind: Kind): string {
    const refused = this.#refused.get(kind)
    if (refused !== undefined) throw refused
    return this.#shared.get(kind) ?? ''
  }

  /** Creates a record. If its kind is nested, the records above it are the shared ones. */
  async createNew(kind: Kind, values: JsonObject = {}): Promise<string> {
    return this.#create(kind, values, await this.sharedPath({ path: kind.collection }))
  }

  /** The operation's path with the IDs of new records. The last of these records has the values. */
  newPath({ path }: Pick<Operation, 'path'>, values: JsonObject = {}): Promise<string> {
    const last = listCollections(path).at(-1)
    const lastKind = last && kindAt(this.#kinds, last.collection)
    return this.#fillPath(path, (kind, collection) =>
      this.#create(kind, kind === lastKind ? values : {}, collection),
    )
  }

  /** The operation's path with the IDs of shared records. */
  sharedPath({ path }: Pick<Operation, 'path'>): Promise<string> {
    return this.#fillPath(path, async (kind) => this.sharedId(kind))
  }

  /** `idOf` gets each kind of the path, from left to right, and the filled path of its records. */
  async #fillPath(
    path: string,
    idOf: (kind: Kind, collection: string) => Promise<string>,
  ): Promise<string> {
    let filled = path
    for (const { collection } of listCollections(path)) {
      const start = filled.split('/').slice(0, collection.split('/').length)
      const id = await idOf(kindAt(this.#kinds, collection), start.join('/'))
      filled = filled.split('/').with(start.length, id).join('/')
    }
    return filled
  }

  /** For every nullable reference to the kind, creates two records that refer to the record `id`.
   *  Returns the IDs of the created records. */
  async addDependents(kind: string, id: string): Promise<string[]> {
    const ids: string[] = []
    for (const other of this.#kinds)
      for (const [field, { nullable }] of Object.entries(this.#fieldsOf(other)))
        if (nullable && this.#referredKinds.get(field)?.name === kind)
          for (let count = 0; count < 2; count++)
            ids.push(await this.createNew(other, { [field]: id }))
    return ids
  }

  /** If the response reports new records, notes them for their deletion with the key. */
  noteCreated(operation: Operation, response: ReceivedResponse, key = this.#key): void {
    for (const path of this.#listNewPaths(operation, response))
      if (this.#kinds.some(({ remove }) => remove && matchesTemplate(remove.path, path)))
        this.#created.push({ path, key })
  }

  #listNewPaths(operation: Operation, { status, headers, json }: ReceivedResponse): string[] {
    const batch = findBatch(this.#contract, operation)
    if (!batch) return status === 201 ? [headers.get('location') ?? ''] : []
    const { results = [] } = (json ?? {}) as { results?: JsonObject[] }
    return results
      .filter((result) => result.status === 201)
      .map(({ record }) => `${batch.create.path}/${(record as JsonObject).id}`)
  }

  /** The number of records created so far, for `cleanUp`. */
  get createdCount(): number {
    return this.#created.length
  }

  /** Deletes the records that were created after the first `keptCount`, the newest first. Tries all
   *  of them, then throws the first failure. */
  async cleanUp(keptCount = 0): Promise<void> {
    const failures: unknown[] = []
    for (const { path, key } of this.#created.splice(keptCount).toReversed())
      await this.#send({ method: 'DELETE', path, headers: {}, key }).catch((error) => {
        failures.push(error)
      })
    if (failures.length > 0) throw failures[0]
  }

  /** The ID of a new record, or of the first record of a kind that no request can create. */
  async #create(kind: Kind, values: JsonObject, collection: string): Promise<string> {
    const operation = kind.create ?? kind.cause
    if (!operation) return await this.#findFirst(collection)
    const body = operation.body && {
      ...(await this.validBody(operation)),
      ...this.#neededValues.get(kind),
      ...values,
    }
    const file = exampleFile(operation)
    const search = file && `?${toSearch(Object.entries({ ...file.query, ...values }))}`
    const request: Request = {
      method: 'POST',
      path: kind.create ? collection + (search ?? '') : await this.newPath(operation),
      headers: body || file ? { 'Content-Type': file?.mediaType ?? 'application/json' } : {},
      body: file?.text ?? (body ? JSON.stringify(body) : undefined),
      key: this.#key,
    }
    const { status, text, json } = await this.#send(request)
    const { id } = (json ?? {}) as { id?: unknown }
    if (status !== 201 || typeof id !== 'string')
      throw new ContractBroken(
        'positive_data_acceptance',
        request,
        `valid data returned ${status}: ${shorten(text)}`,
      )
    if (kind.remove) this.#created.push({ path: `${collection}/${id}`, key: this.#key })
    return id
  }

  #fieldsOf({ create }: Kind) {
    return (create && requestSchema(this.#contract, create).properties) ?? {}
  }

  async #findFirst(collection: string): Promise<string> {
    const request: Request = { method: 'GET', path: collection, headers: {}, key: this.#key }
    const { status, text, json } = await this.#send(request)
    const items = readPointer(json, readListWords(this.#contract)?.items ?? '/data')
    const id = readPointer(items, '/0/id')
    if (typeof id !== 'string')
      throw new ContractBroken(
        'ensure_resource_availability',
        request,
        `there is no record to test with: ${status}: ${shorten(text)}`,
      )
    return id
  }
}
