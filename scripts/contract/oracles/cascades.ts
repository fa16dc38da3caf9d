/** Oracle: the deletion of a record clears or keeps the references to it, as `x-when-deleted` says,
 *  and touches no other record. The model of sequences computes what each request must do. */
import type { Operation } from '../../model/operations.ts'
import type { Check, Run } from '../run.ts'
import { assertEndState } from './sequences/sequence-end.ts'
import {
  addNeeded,
  type LinkedKind,
  listDescribedKinds,
  type Reference,
} from './sequences/sequence-kinds.ts'
import { type RecordModel, withModel } from './sequences/sequence-model.ts'

/** Several, so that a service that changes only the first record is found. */
const DEPENDENTS = 3

export function* cascadeChecks(run: Run, operation: Operation): Generator<Check> {
  const kinds = listDescribedKinds(run)
  const target = kinds.find(({ remove }) => remove === operation)
  if (target === undefined) return
  const listReferring = (whenDeleted: Reference['whenDeleted']) =>
    kinds.filter(({ references }) =>
      references.some((one) => one.to === target.name && one.whenDeleted === whenDeleted),
    )
  const dependents = listReferring('cleared')
  const check = (what: string, blocking: LinkedKind[]): Check => ({
    what,
    async perform() {
      const begin = addNeeded(kinds, [target, ...dependents, ...blocking])
      await withModel(run, { kinds, begin }, (model) =>
        assertDeletion(run, model, { target, dependents, blocking }),
      )
    },
  })
  if (dependents.length > 0) yield check('the references to the deleted record', [])
  for (const kind of listReferring('refused'))
    yield check(`a ${kind.name} that refers to the record`, [kind])
}

interface Deletion {
  target: LinkedKind
  /** The deletion clears the references of their records. */
  dependents: LinkedKind[]
  /** The service refuses the deletion until their records are deleted. */
  blocking: LinkedKind[]
}

/** Each new record refers to the newest record of another kind, and those of `begin` to a record that
 *  stays. The model asserts the result of each deletion. */
async function assertDeletion(
  run: Run,
  model: RecordModel,
  { target, dependents, blocking }: Deletion,
): Promise<void> {
  const record = await model.create(target)
  if (record === undefined) return
  for (let count = 0; count < DEPENDENTS; count++)
    for (const kind of dependents) await model.create(kind)
  for (const kind of blocking) {
    const blocker = await model.create(kind)
    await model.remove(record)
    if (blocker !== undefined) await model.remove(blocker)
  }
  await model.remove(record)
  await assertEndState(run, model)
}
