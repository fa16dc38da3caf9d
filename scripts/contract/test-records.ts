/** The records that a test run creates for its requests, and their deletion. */
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { inlineReferences } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import { readListWords } from '../words/lists.ts'
import { readPointer } from '../words/read.ts'
import { ContractBroken, shorten } from './checks.ts'
import {
  depthOf,
  isBelow,
  type Kind,
  kindOf,
  listCollections,
  listKinds,
  listReferences,
} from './record-kinds.ts'
import type { ReceivedResponse, Request } from './request.ts'
import { least } from './valid-values.ts'

type Body = Record<string, unknown>

/** A record that the service did not create. */
export interface FailedRecord {
  /** The operation that should have created or returned it. */
  operation: Operation
  error: ContractBroken
}

export interface RunRecords {
  /** The shared records that do not exist, and why. */
  failed: FailedRecord[]
  /** Why the operation cannot be tested: the name of a record that it needs, and that does not
   *  exist. */
  missingFor(operation: Operation): string | undefined
  inlineSchema(operation: Operation): Schema | null
  /** A valid body that refers to new records where a reference is required. */
  bodyFor(operation: Operation): Promise<Body>
  /** A copy of the body with references to existing records. */
  withReferences(operation: Operation, body: Body): Promise<Body>
  /** The operation's path with the IDs of new records, which have the values. */
  newPath(operation: Operation, values?: Body): Promise<string>
  /** The operation's path with the IDs of shared records. */
  knownPath(operation: Operation): Promise<string>
  /** Whether a field has the ID of another record. */
  isReference(field: string): boolean
  /** Creates a record of every kind with an optional reference to this record, and returns their
   *  IDs. */
  addDependents(kind: string, id: string): Promise<string[]>
  /** Notes the record that the response created, for deletion. */
  note(response: ReceivedResponse): void
  /** Keeps the records created so far until `cleanUpCase`. */
  keepUntilCaseEnds(): void
  /** Deletes the records that were created since the last clean-up. */
  cleanUpCheck(): Promise<void>
  cleanUpCase(): Promise<void>
  /** Deletes all records of the run. */
  dispose(): Promise<void>
}

function createRefusal(
  request: Omit<Request, 'key'>,
  { status, text }: ReceivedResponse,
  key: string,
): ContractBroken {
  return new ContractBroken(
    'positive_data_acceptance',
    { ...request, key },
    `valid data returned ${status}: ${shorten(text)}`,
  )
}

/** Creates the shared records, as far as the service permits. The methods that need a record throw
 *  ContractBroken if the service refused it. */
export async function prepareRecords(
  contract: Contract,
  sendAs: (request: Request) => Promise<ReceivedResponse>,
  key: string,
): Promise<RunRecords> {
  const records = new TestRecords(contract, sendAs, key)
  await records.createShared()
  return records
}

class TestRecords implements RunRecords {
  private readonly kinds: Kind[]
  /** By field. */
  private readonly references: Map<string, Kind>
  private readonly contract: Contract
  private readonly send: (request: Omit<Request, 'key'>) => Promise<ReceivedResponse>
  private readonly key: string
  /** IDs by kind. */
  private readonly shared = new Map<Kind, string>()
  /** Why there is no shared record, by kind. */
  private readonly refused = new Map<Kind, ContractBroken>()
  /** Paths of the records to delete, oldest first. */
  private untilDispose: string[] = []
  private untilCaseEnds: string[] = []
  private untilCheckEnds: string[] = []

  constructor(
    contract: Contract,
    sendAs: (request: Request) => Promise<ReceivedResponse>,
    key: string,
  ) {
    this.kinds = listKinds(contract)
    this.references = listReferences(contract, this.kinds)
    for (const { body } of this.kinds)
      for (const [field, schema] of Object.entries(body.properties ?? {})) {
        const referred = this.references.get(field)?.referred
        if (referred) Object.assign(referred, schema['x-refers-with'])
      }
    this.contract = contract
    this.send = (request) => sendAs({ ...request, key })
    this.key = key
  }

  /** Nested kinds come after those above them. Kinds that cannot be created come last: their
   *  records result from the others. */
  async createShared(): Promise<void> {
    const ordered = this.kinds.toSorted(
      (a, b) =>
        depthOf(a) - depthOf(b) || Number(a.create === undefined) - Number(b.create === undefined),
    )
    for (const kind of ordered)
      try {
        const collection = await this.knownPath({ path: kind.collection })
        this.shared.set(kind, await this.create(kind, {}, collection))
      } catch (error) {
        if (!(error instanceof ContractBroken)) throw error
        this.refused.set(kind, error)
      }
    this.untilDispose = this.untilCheckEnds
    this.untilCheckEnds = []
  }

  get failed(): FailedRecord[] {
    const reported = new Set<ContractBroken>()
    return [...this.refused].flatMap(([{ create, list }, error]) => {
      const operation = create ?? list
      // A nested record fails with the error of the record above it.
      if (operation === undefined || reported.has(error)) return []
      reported.add(error)
      return [{ operation, error }]
    })
  }

  missingFor(operation: Operation): string | undefined {
    const inPath = listCollections(operation.path).map(({ collection }) =>
      kindOf(this.kinds, collection),
    )
    const fields = Object.keys(this.inlineSchema(operation)?.properties ?? {})
    const inBody = fields.flatMap((field) => this.references.get(field) ?? [])
    return [...inPath, ...inBody].find((kind) => this.refused.has(kind))?.name
  }

  inlineSchema({ body }: Operation): Schema | null {
    return body && inlineReferences(this.contract.sources, body.schema)
  }

  bodyFor(operation: Operation): Promise<Body> {
    return this.withReferences(operation, least(this.inlineSchema(operation) ?? {}) as Body)
  }

  async withReferences(operation: Operation, body: Body): Promise<Body> {
    const { required = [] } = this.inlineSchema(operation) ?? {}
    const filled = { ...body }
    for (const [field, value] of Object.entries(body)) {
      const kind = this.references.get(field)
      // A required reference may have to be unique, so it gets a new record.
      if (kind !== undefined && typeof value === 'string')
        filled[field] = required.includes(field) ? await this.createNew(kind) : this.sharedId(kind)
    }
    return filled
  }

  isReference(field: string): boolean {
    return this.references.has(field)
  }

  newPath({ path }: Operation, values: Body = {}): Promise<string> {
    const last = listCollections(path).at(-1)
    const lastKind = last && kindOf(this.kinds, last.collection)
    return this.fillPath(path, (kind, collection) =>
      this.create(kind, kind === lastKind ? values : {}, collection),
    )
  }

  knownPath({ path }: Pick<Operation, 'path'>): Promise<string> {
    return this.fillPath(path, async (kind) => this.sharedId(kind))
  }

  /** `findId` gets each kind of the path, from left to right, and the filled path of its
   *  records. */
  private async fillPath(
    path: string,
    findId: (kind: Kind, collection: string) => Promise<string>,
  ): Promise<string> {
    let filled = path
    for (const { collection } of listCollections(path)) {
      const start = filled.split('/').slice(0, collection.split('/').length)
      const id = await findId(kindOf(this.kinds, collection), start.join('/'))
      filled = filled.split('/').with(start.length, id).join('/')
    }
    return filled
  }

  async addDependents(kind: string, id: string): Promise<string[]> {
    const ids: string[] = []
    for (const other of this.kinds)
      for (const [field, { nullable }] of Object.entries(other.body.properties ?? {}))
        if (nullable && this.references.get(field)?.name === kind)
          ids.push(await this.createNew(other, { [field]: id }))
    return ids
  }

  note(response: ReceivedResponse): void {
    const location = response.headers.get('location')
    const isDeletable = this.kinds.some(
      ({ canDelete, collection }) => canDelete && location && isBelow(location, collection),
    )
    if (response.status === 201 && location && isDeletable) this.untilCheckEnds.push(location)
  }

  keepUntilCaseEnds(): void {
    this.untilCaseEnds.push(...this.untilCheckEnds)
    this.untilCheckEnds = []
  }

  async cleanUpCheck(): Promise<void> {
    const paths = this.untilCheckEnds
    this.untilCheckEnds = []
    await this.remove(paths)
  }

  async cleanUpCase(): Promise<void> {
    const paths = [...this.untilCaseEnds, ...this.untilCheckEnds]
    this.untilCaseEnds = []
    this.untilCheckEnds = []
    await this.remove(paths)
  }

  async dispose(): Promise<void> {
    await this.remove([...this.untilDispose, ...this.untilCaseEnds, ...this.untilCheckEnds])
  }

  private sharedId(kind: Kind): string {
    const refused = this.refused.get(kind)
    if (refused !== undefined) throw refused
    return this.shared.get(kind) ?? ''
  }

  /** Creates a record below the shared ones. */
  private async createNew(kind: Kind, more: Body = {}): Promise<string> {
    return this.create(kind, more, await this.knownPath({ path: kind.collection }))
  }

  private async create(kind: Kind, more: Body, collection: string): Promise<string> {
    if (!kind.create) return await this.findFirst(collection)
    const request = {
      method: 'POST',
      path: collection,
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ ...(await this.bodyFor(kind.create)), ...kind.referred, ...more }),
    }
    const response = await this.send(request)
    const { id } = (response.json ?? {}) as { id?: unknown }
    if (response.status !== 201 || typeof id !== 'string')
      throw createRefusal(request, response, this.key)
    if (kind.canDelete) this.untilCheckEnds.push(`${collection}/${id}`)
    return id
  }

  private async findFirst(collection: string): Promise<string> {
    const request = { method: 'GET', path: collection, headers: {} }
    const response = await this.send(request)
    const items = readPointer(response.json, readListWords(this.contract)?.items ?? '/data')
    const id = readPointer(items, '/0/id')
    if (typeof id !== 'string')
      throw new ContractBroken(
        'ensure_resource_availability',
        { ...request, key: this.key },
        `there is no record to test with: ${response.status}: ${shorten(response.text)}`,
      )
    return id
  }

  /** The newest first. Throws the first failure after it has tried all. */
  private async remove(paths: string[]): Promise<void> {
    const failures: unknown[] = []
    for (const path of paths.reverse())
      await this.send({ method: 'DELETE', path, headers: {} }).catch((error) => {
        failures.push(error)
      })
    if (failures.length > 0) throw failures[0]
  }
}
