/** Oracle: sequences of requests, and simultaneous requests, leave the records that a model
 *  expects. */
import fc from 'fast-check'
import type { Contract } from '../../model/contract.ts'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { requestSchema } from '../../words/records.ts'
import { randomCheck } from '../random-check.ts'
import { type Receiver, startContractReceiver } from '../receiver.ts'
import type { Check, Run } from '../run.ts'
import { listUpdateBodies } from './sequence-bodies.ts'
import { assertEndState } from './sequence-end.ts'
import {
  addNeeded,
  addReferred,
  type LinkedKind,
  listLinkedKinds,
  listNeighbours,
} from './sequence-kinds.ts'
import { type ModelRecord, type RecordModel, withModel } from './sequence-model.ts'
import { simultaneousChecks } from './sequence-simultaneous.ts'

const MAX_STEPS = 8
const MAX_LONG_STEPS = 40
/** A run has one sequence for this many random requests. */
const RANDOM_REQUESTS_PER_SEQUENCE = 2
/** With --minutes, each of these has a seed of its own. */
const LONG_SEQUENCES_PER_SEED = 5

export function* sequenceChecks(run: Run, operation: Operation): Generator<Check> {
  const kinds = listLinkedKinds(run.contract).filter((one) => hasWords(run, one))
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
  const { createWebhook, receiver: shared } = run.target
  return {
    what: sequences.what,
    async perform() {
      if (createWebhook === undefined) return sequenceCheck(run, sequences).perform()
      await using own = shared === undefined ? await startContractReceiver() : undefined
      const receiver = (shared ?? own) as Receiver
      await using _webhook = await createWebhook(receiver)
      await sequenceCheck(run, { ...sequences, receiver }).perform()
    },
  }
}

function sequenceCheck(run: Run, sequences: Sequences): Check {
  const { what, runs, kind, kinds, maxSteps, receiver } = sequences
  const values = fc.record({
    begin: fc.subarray(kinds),
    steps: listSteps(run.contract, kind, maxSteps),
  })
  return randomCheck(run, { what, runs }, fc.noBias(values), ({ begin, steps }) =>
    withModel(run, { kinds, begin: addNeeded(kinds, [...begin, kind]) }, async (model) => {
      await fc.asyncModelRun(() => ({ model, real: model }), steps)
      await assertEndState(run, model, receiver)
    }),
  )
}

/** Whether `x-refers-to` and `x-when-deleted` describe each reference. */
function hasWords({ contract, records }: Run, { create, references }: LinkedKind): boolean {
  const fields = Object.keys(requestSchema(contract, create).properties ?? {})
  return fields
    .filter((name) => records.kindOf(name))
    .every((name) => references.some(({ field }) => field === name))
}

type Action = 'create' | 'update' | 'update an older version' | 'delete'

interface Choice {
  action: Action
  /** Random numbers that choose the kind, the record and the body. */
  kind: number
  record: number
  body: number
}

function listSteps(contract: Contract, kind: LinkedKind, maxSteps: number) {
  const step = (action: Action) =>
    fc
      .record({ kind: fc.nat(), record: fc.nat(), body: fc.nat() })
      .map((choice) => new Step(contract, kind, { action, ...choice }))
  // Half of all steps are updates of the current version.
  const actions: Action[] = ['update', 'update', 'update', 'create', 'delete']
  const steps = [...actions, 'update an older version' as const].map(step)
  const size = maxSteps > MAX_STEPS ? 'large' : 'medium'
  return fc.commands(steps, { maxCommands: maxSteps, size })
}

/** A request of the sequence. fast-check leaves the step out if `check` returns false, because the
 *  step is impossible in the present state of the model. */
class Step implements fc.AsyncCommand<RecordModel, RecordModel> {
  readonly #contract: Contract
  readonly #kind: LinkedKind
  readonly #choice: Choice

  constructor(contract: Contract, kind: LinkedKind, choice: Choice) {
    this.#contract = contract
    this.#kind = kind
    this.#choice = choice
  }

  check(model: RecordModel): boolean {
    const { action } = this.#choice
    const kind = this.#findKind(model)
    if (action === 'create') return model.canCreate(kind)
    const record = this.#findRecord(model)
    if (record === undefined) return false
    return action !== 'update an older version' || this.#findOldTag(model, record) !== undefined
  }

  async run(model: RecordModel): Promise<void> {
    const { action } = this.#choice
    const record = this.#findRecord(model)
    if (action === 'create') await model.create(this.#findKind(model), this.#choice.record)
    else if (record === undefined) return
    else if (action === 'delete') await model.remove(record)
    else if (action === 'update') await model.update(record, this.#body(record))
    else await model.update(record, this.#body(record), this.#findOldTag(model, record))
  }

  /** At least half of the steps choose the tested kind. */
  #findKind({ kinds }: RecordModel): LinkedKind {
    const { kind } = this.#choice
    return kind % 2 === 0 ? this.#kind : (kinds[kind % kinds.length] ?? this.#kind)
  }

  #findRecord(model: RecordModel): ModelRecord | undefined {
    const records = model.listLive(this.#findKind(model))
    return records[this.#choice.record % records.length]
  }

  /** The ETag of an older version. Undefined if the record has none, if the update takes no
   *  If-Match, or if the service must refuse the body of the update. */
  #findOldTag(model: RecordModel, record: ModelRecord): string | undefined {
    const takesTag = record.kind.update.parameters.some(
      ({ name }) => name.toLowerCase() === 'if-match',
    )
    const isAllowed = model.findRefusal(record, this.#body(record)) === undefined
    const old = record.oldTags.findLast((tag) => tag !== record.tag)
    return takesTag && isAllowed ? old : undefined
  }

  #body({ kind }: ModelRecord): JsonObject {
    const bodies = listUpdateBodies(this.#contract, kind)
    return bodies[this.#choice.body % bodies.length] ?? {}
  }
}
