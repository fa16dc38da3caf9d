/** Simultaneous requests must have the same effect as requests that the service handles one after
 *  the other. */
import type { JsonObject } from '../../../model/json.ts'
import { failuresOf } from '../../contract-broken.ts'
import { type Check, newRequest, type Run } from '../../run.ts'
import {
  type LinkedKind,
  listNeighbours,
  listUpdateBodies,
  type Reference,
} from './sequence-kinds.ts'
import { type ModelRecord, type RecordModel, withModel } from './sequence-model.ts'

const broken = failuresOf('sequence')

/** By chance, the service may handle simultaneous requests one after the other, and a fault would
 *  not show. */
const REPETITIONS = 3

export function* simultaneousChecks(
  run: Run,
  kind: LinkedKind,
  kinds: LinkedKind[],
): Generator<Check> {
  const neighbours = listNeighbours(kinds, kind)
  const check = (what: string, work: (model: RecordModel) => Promise<void>): Check => ({
    what,
    async perform() {
      for (let count = 0; count < REPETITIONS; count += 1)
        await withModel(run, { kinds: neighbours, begin: neighbours }, work)
    },
  })
  yield check('simultaneous updates of one version', (model) => assertOneUpdate(run, kind, model))
  yield check('simultaneous changes to final states', (model) => assertOneState(run, kind, model))
  for (const other of kinds)
    for (const reference of other.references)
      if (reference.to === kind.name)
        yield check(`${other.name} created while ${kind.name} is deleted`, (model) =>
          assertNoDangling(run, { parent: kind, child: other, reference }, model),
        )
}

/** Throws unless exactly one of two simultaneous updates with the same If-Match succeeds. */
async function assertOneUpdate(run: Run, kind: LinkedKind, model: RecordModel): Promise<void> {
  const [record] = model.listLive(kind)
  if (record?.tag == null) return
  const bodies = listUpdateBodies(run.contract, kind).filter(
    (body) => Object.keys(body).length === 1 && model.findRefusal(record, body) === undefined,
  )
  const changing = bodies.filter((body) =>
    Object.entries(body).every(([name, value]) => record.fields[name] !== value),
  )
  await assertOneSuccess(run, record, changing.slice(-2), { 'If-Match': record.tag })
}

/** Throws unless exactly one of two simultaneous changes to different final states succeeds. No
 *  other state can follow a final one. */
async function assertOneState(run: Run, kind: LinkedKind, model: RecordModel): Promise<void> {
  const [record] = model.listLive(kind)
  if (record === undefined) return
  for (const [name, next] of Object.entries(kind.words.states ?? {})) {
    const finals = (next[String(record.fields[name])] ?? []).filter(
      (value) => next[String(value)]?.length === 0,
    )
    await assertOneSuccess(
      run,
      record,
      finals.slice(0, 2).map((value) => ({ [name]: value })),
    )
  }
}

async function assertOneSuccess(
  run: Run,
  { kind, path }: ModelRecord,
  bodies: JsonObject[],
  headers: Record<string, string> = {},
): Promise<void> {
  if (bodies.length < 2) return
  const requests = bodies.map((body) => newRequest(run, kind.update, path, { body, headers }))
  const responses = await Promise.all(requests.map((request) => run.send(kind.update, request)))
  const accepted = responses.filter(({ status }) => status === kind.update.success.status)
  const [request] = requests
  if (request && accepted.length !== 1)
    throw broken(
      request,
      `${accepted.length} of ${bodies.length} simultaneous updates succeeded: ${JSON.stringify(bodies)}`,
      requests,
    )
}

interface Link {
  parent: LinkedKind
  child: LinkedKind
  reference: Reference
}

/** Throws if a new record refers to a record that was deleted at the same time. */
async function assertNoDangling(
  run: Run,
  { parent, child, reference: { field } }: Link,
  model: RecordModel,
): Promise<void> {
  for (const record of model.records.filter(({ kind }) => kind === child))
    await model.remove(record)
  const [record] = model.listLive(parent)
  if (record === undefined || !model.canCreate(child)) return
  const create = newRequest(run, child.create, child.create.path, { body: model.bodyFor(child) })
  const [created, removed] = await Promise.all([
    run.send(child.create, create),
    run.send(parent.remove, newRequest(run, parent.remove, record.path)),
  ])
  const isDeleted = removed.status === parent.remove.success.status
  const path = created.headers.get('location')
  if (!isDeleted || created.status !== child.create.success.status || path === null) return
  const read = newRequest(run, child.get, path)
  const { json } = await run.send(child.get, read)
  if ((json as JsonObject | undefined)?.[field] === record.fields.id)
    throw broken(read, `${field} refers to a record that was deleted while this one was created`, [
      create,
    ])
}
