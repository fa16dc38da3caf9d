/** Oracle: sequences of requests, and simultaneous requests, leave the records that a model
 *  expects. */
import fc from 'fast-check'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import type { Receiver } from '../deliveries/receiver.ts'
import { randomCheck } from '../random-check.ts'
import { type Check, hasParameter, type Run } from '../run.ts'
import { openWebhook } from './deliveries.ts'
import { assertEndState } from './sequences/sequence-end.ts'
import {
  addNeeded,
  addReferred,
  type LinkedKind,
  listDescribedKinds,
  listNeighbours,
  listUpdateBodies,
} from './sequences/sequence-kinds.ts'
import { type ModelRecord, type RecordModel, withModel } from './sequences/sequence-model.ts'
import { simultaneousChecks } from './sequences/sequence-simultaneous.ts'

const MAX_STEPS = 8
const MAX_LONG_STEPS = 40
/** A run has one sequence for this many random requests. */
const RANDOM_REQUESTS_PER_SEQUENCE = 2
/** With --minutes, each of these has a seed of its own. */
const LONG_SEQUENCES_PER_SEED = 5

export function* sequenceChecks(run: Run, operation: Operation): Generator<Check> {
  const kinds = listDescribedKinds(run)
  const kind = kinds.find(({ update }) => update === operation)
  if (kind === undefined) return
  const { randomRequests, minutes = 0, seed, ids } = run.options
  const runs = Math.ceil(randomRequests / RANDOM_REQUESTS_PER_SEQUENCE)
  const what = 'a sequence'
  const neighbours = listNeighbours(kinds, kind)
  yield sequenceCheck(run, { what, runs, kind, kinds: neighbours, maxSteps: MAX_STEPS })
  yield* simultaneousChecks(run, kind, kinds)

  const tested = kinds.filter(({ update }) => ids.includes(update.id)).length
  const end = performance.now() + (minutes * 60_000) / tested
  for (let own = seed; performance.now() < end; own += 1) {
    const ownRun = { ...run, options: { ...run.options, seed: own } }
    yield longSequenceCheck(ownRun, {
      what: `a long sequence (repeat it with --seed ${own} --minutes 1)`,
      runs: LONG_SEQUENCES_PER_SEED,
      kind,
      kinds: addReferred(kinds, kinds, () => true),
      maxSteps: MAX_LONG_STEPS,
    })
  }
}

interface Sequences {
  what: string
  runs: number
  /** At least half of the steps are about it. */
  kind: LinkedKind
  /** All kinds of the sequence. A kind comes after the kinds to which it refers. */
  kinds: LinkedKind[]
  maxSteps: number
  /** Gets the deliveries of the account. */
  receiver?: Receiver
}

/** Also compares the deliveries if the target has a webhook. */
function longSequenceCheck(run: Run, sequences: Sequences): Check {
  return {
    what: sequences.what,
    async perform() {
      await using webhook = await openWebhook(run)
      await sequenceCheck(run, { ...sequences, receiver: webhook?.receiver }).perform()
    },
  }
}

function sequenceCheck(run: Run, sequences: Sequences): Check {
  const { what, runs, kind, kinds, maxSteps, receiver } = sequences
  const values = fc.record({ begin: fc.subarray(kinds), steps: listSteps(maxSteps) })
  return randomCheck(run, { what, runs }, fc.noBias(values), ({ begin, steps }) =>
    withModel(run, { kinds, begin: addNeeded(kinds, [...begin, kind]) }, async (model) => {
      for (const step of steps) await performStep(run, model, kind, step)
      await assertEndState(run, model, receiver)
    }),
  )
}

/** Half of all steps are updates of the current version. */
const ACTIONS = ['update', 'update', 'update', 'create', 'delete', 'outdated update'] as const

/** A request of the sequence. The random numbers choose the kind, the record and the body. */
interface Step {
  action: (typeof ACTIONS)[number]
  kind: number
  record: number
  body: number
}

function listSteps(maxSteps: number): fc.Arbitrary<Step[]> {
  const choices = fc.record({ kind: fc.nat(), record: fc.nat(), body: fc.nat() })
  const steps = ACTIONS.map((action) => choices.map((choice) => ({ action, ...choice })))
  return fc.array(fc.oneof(...steps), { maxLength: maxSteps, size: 'medium' })
}

/** Does nothing if the step is impossible in the present state of the model. At least half of the
 *  steps are about the kind `tested`. */
async function performStep(
  { contract }: Run,
  model: RecordModel,
  tested: LinkedKind,
  { action, ...choice }: Step,
): Promise<void> {
  const { kinds } = model
  const kind = (choice.kind % 2 === 1 ? kinds[choice.kind % kinds.length] : undefined) ?? tested
  if (action === 'create') {
    if (model.canCreate(kind)) await model.create(kind, choice.record)
    return
  }
  const records = model.listLive(kind)
  const record = records[choice.record % records.length]
  if (record === undefined) return
  if (action === 'delete') return await model.remove(record)
  const bodies = listUpdateBodies(contract, kind)
  const body = bodies[choice.body % bodies.length] ?? {}
  if (action === 'update') return await model.update(record, body)
  const tag = findOldTag(model, record, body)
  if (tag !== undefined) await model.update(record, body, tag)
}

/** The ETag of an older version. Undefined if the record has none, if the update takes no If-Match,
 *  or if the service must refuse the body of the update. */
function findOldTag(model: RecordModel, record: ModelRecord, body: JsonObject): string | undefined {
  const isAllowed = model.findRefusal(record, body) === undefined
  if (!isAllowed || !hasParameter(record.kind.update, 'If-Match')) return undefined
  return record.oldTags.findLast((tag) => tag !== record.tag)
}
