/** The records that a run makes for itself, so that what it sends can name some, and how it is rid of them again. */
import type { Operation } from '../model/operations.ts'
import { inlineReferences } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import type { Sources } from '../model/source.ts'
import { beginningOf, ContractBroken } from './checks.ts'
import type { Answer, Request } from './request.ts'
import { least } from './values.ts'

type Body = Record<string, unknown>

/** A kind of record, by the name that paths and references give it: `job` of `{job}` and `job_id`. */
interface Kind {
  collection: string
  create: Operation | undefined
  body: Schema
  canDelete: boolean
}

export interface Records {
  schemaOf(operation: Operation): Schema | null
  /** A body that the operation takes, naming new records wherever one is required. */
  bodyFor(operation: Operation): Promise<Body>
  /** A copy of the body in which what names records names some that there are. */
  withReferences(operation: Operation, body: Body): Promise<Body>
  /** The operation's path with the ids of new records. */
  newPath(operation: Operation): Promise<string>
  /** The same with ids of records that are there for everybody to read. */
  knownPath(operation: Operation): Promise<string>
  /** Makes one record of every kind that may, but need not, name this one. */
  addDependents(kind: string, id: string): Promise<void>
  /** To be told of each answer: what it made is removed by and by. */
  note(answer: Answer): void
  /** What was made so far stays until `cleanUpKept`. */
  keep(): void
  /** Removes what was made since the last time, the newest first. */
  cleanUp(): Promise<void>
  cleanUpKept(): Promise<void>
  /** Removes everything. */
  dispose(): Promise<void>
}

/** What a record needs beyond what its schema requires before another can name it. */
const READY: Record<string, Body> = { job: { status: 'open' } }

function unmade(
  request: Omit<Request, 'key'>,
  { status, text }: Answer,
  key: string,
): ContractBroken {
  return new ContractBroken(
    'positive_data_acceptance',
    { ...request, key },
    `valid data got ${status}: ${beginningOf(text)}`,
  )
}

/** Makes the records that are shared. Throws ContractBroken when that cannot be done, as does all that makes records later. */
export async function prepareRecords(
  contract: { operations: Operation[]; sources: Sources },
  sendAs: (request: Request) => Promise<Answer>,
  key: string,
): Promise<Records> {
  const send = (request: Omit<Request, 'key'>): Promise<Answer> => sendAs({ ...request, key })
  const kinds = kindsOf(contract)
  const shared = new Map<string, string>()
  /** Addresses, the newest last. */
  let made: string[] = []

  const create = async (name: string, more: Body = {}): Promise<string> => {
    const kind = kinds.get(name)
    if (!kind?.create) return await firstOf(kind?.collection ?? '')
    const body = { ...(await bodyFor(kind.create)), ...READY[name], ...more }
    const request = {
      method: 'POST',
      path: kind.collection,
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    }
    const answer = await send(request)
    const { id } = (answer.json ?? {}) as { id?: unknown }
    if (answer.status !== 201 || typeof id !== 'string') throw unmade(request, answer, key)
    if (kind.canDelete) made.push(`${kind.collection}/${id}`)
    return id
  }
  const firstOf = async (collection: string): Promise<string> => {
    const request = { method: 'GET', path: collection, headers: {} }
    const answer = await send(request)
    const id = (answer.json as { data?: { id?: unknown }[] } | undefined)?.data?.[0]?.id
    if (typeof id !== 'string') throw unmade(request, answer, key)
    return id
  }
  const remove = async (paths: string[]): Promise<void> => {
    for (const path of paths.reverse()) await send({ method: 'DELETE', path, headers: {} })
  }
  const schemaOf = ({ body }: Operation): Schema | null =>
    body && inlineReferences(contract.sources, body.schema)
  const fill = async (operation: Operation, body: Body): Promise<Body> => {
    const { required = [] } = schemaOf(operation) ?? {}
    const filled = { ...body }
    for (const [field, value] of Object.entries(body)) {
      const name = referenced(field, kinds)
      // Of what must be named, some may be named once: each gets its own.
      if (name !== undefined && typeof value === 'string')
        filled[field] = required.includes(field) ? await create(name) : shared.get(name)
    }
    return filled
  }
  const bodyFor = (operation: Operation): Promise<Body> =>
    fill(operation, least(schemaOf(operation) ?? {}) as Body)
  const path = async (
    { path: template }: Operation,
    idOf: (name: string) => Promise<string>,
  ): Promise<string> => {
    let filled = template
    for (const [whole, name = ''] of template.matchAll(/\{(.+?)\}/g))
      filled = filled.replace(whole, await idOf(name))
    return filled
  }

  const inOrder = [...kinds.keys()].sort(
    (a, b) => Number(!kinds.get(a)?.create) - Number(!kinds.get(b)?.create),
  )
  try {
    for (const name of inOrder) shared.set(name, await create(name))
  } catch (error) {
    await remove(made)
    throw error
  }
  const lasting = made
  made = []
  let kept: string[] = []

  return {
    schemaOf,
    bodyFor,
    withReferences: fill,
    newPath: (operation) => path(operation, create),
    knownPath: (operation) => path(operation, async (name) => shared.get(name) ?? ''),
    async addDependents(kind, id) {
      for (const [name, { body }] of kinds)
        if (body.properties?.[`${kind}_id`]?.nullable) await create(name, { [`${kind}_id`]: id })
    },
    note(answer) {
      const location = answer.headers.get('location')
      if (
        answer.status === 201 &&
        location &&
        [...kinds.values()].some(
          (kind) => kind.canDelete && location.startsWith(`${kind.collection}/`),
        )
      )
        made.push(location)
    },
    keep() {
      kept.push(...made)
      made = []
    },
    async cleanUp() {
      const some = made
      made = []
      await remove(some)
    },
    async cleanUpKept() {
      const some = [...kept, ...made]
      kept = []
      made = []
      await remove(some)
    },
    async dispose() {
      await remove([...lasting, ...kept, ...made])
    },
  }
}

function kindsOf({
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
    const create = all.find(
      (operation) => operation.path === collection && operation.method === 'post',
    )
    const body = create?.body ? inlineReferences(sources, create.body.schema) : {}
    const canDelete = all.some(
      (operation) => operation.path === path && operation.method === 'delete',
    )
    kinds.set(name, { collection, create, body, canDelete })
  }
  return kinds
}

/** `job_id` names a `job`, if there is such a kind. */
function referenced(field: string, kinds: Map<string, Kind>): string | undefined {
  const name = /^(.+)_id$/.exec(field)?.[1]
  return name !== undefined && kinds.has(name) ? name : undefined
}
