/** The records that a test run creates for its requests, and their deletion. */
import type { Operation } from '../model/operations.ts'
import { inlineReferences } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import type { Sources } from '../model/source.ts'
import { ContractBroken, shorten } from './checks.ts'
import type { ReceivedResponse, Request } from './request.ts'
import { least } from './valid-values.ts'

type Body = Record<string, unknown>

/** A kind of record. Its name comes from paths and references: `job` for `{job}` and `job_id`. */
interface Kind {
  collection: string
  list: Operation | undefined
  create: Operation | undefined
  body: Schema
  /** Values that it needs before another record can refer to it: `x-refers-with` of the reference. */
  referred: Body
  canDelete: boolean
}

/** A record that the service did not create. */
export interface FailedRecord {
  /** The operation that should have created or returned it. */
  operation: Operation
  error: ContractBroken
}

export interface RunRecords {
  /** The shared records that do not exist, and why. */
  failed: FailedRecord[]
  /** Why the operation cannot be tested: the name of a record that it needs, and that does not exist. */
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
  /** Creates a record of every kind with an optional reference to this record, and returns their IDs. */
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
  contract: { operations: Operation[]; sources: Sources },
  sendAs: (request: Request) => Promise<ReceivedResponse>,
  key: string,
): Promise<RunRecords> {
  const records = new TestRecords(contract, sendAs, key)
  await records.createShared()
  return records
}

class TestRecords implements RunRecords {
  private readonly kinds: Map<string, Kind>
  /** Names of kinds, by field. */
  private readonly references: Map<string, string>
  private readonly sources: Sources
  private readonly send: (request: Omit<Request, 'key'>) => Promise<ReceivedResponse>
  private readonly key: string
  /** IDs by kind. */
  private readonly shared = new Map<string, string>()
  /** Why there is no shared record, by kind. */
  private readonly refused = new Map<string, ContractBroken>()
  /** Paths of the records to delete, oldest first. */
  private untilDispose: string[] = []
  private untilCaseEnds: string[] = []
  private untilCheckEnds: string[] = []

  constructor(
    contract: { operations: Operation[]; sources: Sources },
    sendAs: (request: Request) => Promise<ReceivedResponse>,
    key: string,
  ) {
    this.kinds = listKinds(contract)
    this.references = listReferences(contract, this.kinds)
    for (const { body } of this.kinds.values())
      for (const [field, schema] of Object.entries(body.properties ?? {})) {
        const referred = this.kinds.get(this.references.get(field) ?? '')?.referred
        if (referred) Object.assign(referred, schema['x-refers-with'])
      }
    this.sources = contract.sources
    this.send = (request) => sendAs({ ...request, key })
    this.key = key
  }

  /** Kinds that cannot be created come last: their records result from the others. */
  async createShared(): Promise<void> {
    const names = [...this.kinds.keys()]
    const isCreatable = (name: string): boolean => Boolean(this.kinds.get(name)?.create)
    const others = names.filter((name) => !isCreatable(name))
    for (const name of [...names.filter(isCreatable), ...others])
      try {
        this.shared.set(name, await this.create(name))
      } catch (error) {
        if (!(error instanceof ContractBroken)) throw error
        this.refused.set(name, error)
      }
    this.untilDispose = this.untilCheckEnds
    this.untilCheckEnds = []
  }

  get failed(): FailedRecord[] {
    return [...this.refused].flatMap(([name, error]) => {
      const kind = this.kinds.get(name)
      const operation = kind?.create ?? kind?.list
      return operation === undefined ? [] : [{ operation, error }]
    })
  }

  missingFor(operation: Operation): string | undefined {
    const inPath = [...operation.path.matchAll(/\{(.+?)\}/g)].map(([, name = '']) => name)
    const fields = Object.keys(this.inlineSchema(operation)?.properties ?? {})
    const inBody = fields.map((field) => this.references.get(field) ?? '')
    return [...inPath, ...inBody].find((name) => this.refused.has(name))
  }

  inlineSchema({ body }: Operation): Schema | null {
    return body && inlineReferences(this.sources, body.schema)
  }

  bodyFor(operation: Operation): Promise<Body> {
    return this.withReferences(operation, least(this.inlineSchema(operation) ?? {}) as Body)
  }

  async withReferences(operation: Operation, body: Body): Promise<Body> {
    const { required = [] } = this.inlineSchema(operation) ?? {}
    const filled = { ...body }
    for (const [field, value] of Object.entries(body)) {
      const name = this.references.get(field)
      // A required reference may have to be unique, so it gets a new record.
      if (name !== undefined && typeof value === 'string')
        filled[field] = required.includes(field) ? await this.create(name) : this.sharedId(name)
    }
    return filled
  }

  isReference(field: string): boolean {
    return this.references.get(field) !== undefined
  }

  newPath(operation: Operation, values?: Body): Promise<string> {
    return fillPath(operation, (name) => this.create(name, values))
  }

  knownPath(operation: Operation): Promise<string> {
    return fillPath(operation, async (name) => this.sharedId(name))
  }

  async addDependents(kind: string, id: string): Promise<string[]> {
    const ids: string[] = []
    for (const [name, { body }] of this.kinds)
      for (const [field, { nullable }] of Object.entries(body.properties ?? {}))
        if (nullable && this.references.get(field) === kind)
          ids.push(await this.create(name, { [field]: id }))
    return ids
  }

  note(response: ReceivedResponse): void {
    const location = response.headers.get('location')
    const isDeletable = [...this.kinds.values()].some(
      ({ canDelete, collection }) => canDelete && location?.startsWith(`${collection}/`),
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

  private sharedId(name: string): string {
    const refused = this.refused.get(name)
    if (refused !== undefined) throw refused
    return this.shared.get(name) ?? ''
  }

  private async create(name: string, more: Body = {}): Promise<string> {
    const kind = this.kinds.get(name)
    if (!kind?.create) return await this.findFirst(kind?.collection ?? '')
    const request = {
      method: 'POST',
      path: kind.collection,
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ ...(await this.bodyFor(kind.create)), ...kind.referred, ...more }),
    }
    const response = await this.send(request)
    const { id } = (response.json ?? {}) as { id?: unknown }
    if (response.status !== 201 || typeof id !== 'string')
      throw createRefusal(request, response, this.key)
    if (kind.canDelete) this.untilCheckEnds.push(`${kind.collection}/${id}`)
    return id
  }

  private async findFirst(collection: string): Promise<string> {
    const request = { method: 'GET', path: collection, headers: {} }
    const response = await this.send(request)
    const id = (response.json as { data?: { id?: unknown }[] } | undefined)?.data?.[0]?.id
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

async function fillPath(
  { path }: Operation,
  findId: (name: string) => Promise<string>,
): Promise<string> {
  let filled = path
  for (const [placeholder, name = ''] of path.matchAll(/\{(.+?)\}/g))
    filled = filled.replace(placeholder, await findId(name))
  return filled
}

function listKinds({
  operations: all,
  sources,
}: {
  operations: Operation[]
  sources: Sources
}): Map<string, Kind> {
  const kinds = new Map<string, Kind>()
  for (const { path } of all) {
    const [, collection, name] = /^(.*)\/\{([^}]+)\}$/.exec(path) ?? []
    if (collection === undefined || name === undefined) continue
    const find = (method: string) =>
      all.find((operation) => operation.path === collection && operation.method === method)
    const create = find('post')
    const body = create?.body ? inlineReferences(sources, create.body.schema) : {}
    const canDelete = all.some(
      (operation) => operation.path === path && operation.method === 'delete',
    )
    kinds.set(name, { collection, list: find('get'), create, body, referred: {}, canDelete })
  }
  return kinds
}

/** The kinds of other records that fields of bodies refer to, by field: `x-refers-to`. A contract without this word
 *  names them: `job_id` refers to a `job`. */
function listReferences(
  { operations, sources }: { operations: Operation[]; sources: Sources },
  kinds: Map<string, Kind>,
): Map<string, string> {
  const fields = operations.flatMap(({ body }) =>
    Object.entries(body ? (inlineReferences(sources, body.schema).properties ?? {}) : {}),
  )
  const worded = fields.map(([field, schema]): [string, unknown] => [field, schema['x-refers-to']])
  const named = fields.map(([field]): [string, unknown] => [field, /^(.+)_id$/.exec(field)?.[1]])
  const isKind = (entry: [string, unknown]): entry is [string, string] =>
    typeof entry[1] === 'string' && kinds.has(entry[1])
  const found = worded.filter(isKind)
  return new Map(found.length > 0 ? found : named.filter(isKind))
}
