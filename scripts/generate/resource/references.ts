/** The fields of a generated resource that refer to other records. */
import type { Contract } from '../../model/contract.ts'
import type { Operation } from '../../model/operations.ts'
import { recordTypeOf } from '../../model/paths.ts'
import { fail, type Place } from '../../model/source.ts'
import { findRecordOperations, nounOf, tableOf } from '../resources.ts'

export interface Reference {
  /** The type of the records that the field refers to, for example `job_application`. */
  type: string
  /** For example `job application`. */
  noun: string
  /** For example `job-applications`. */
  slug: string
  /** For example `job_applications`. */
  table: string
  /** The operation that deletes such a record. Undefined if there is none. */
  deletion: Operation | undefined
}

/** `task_id` refers to the records of the path `/tasks/{task}`. Throws `ContractError` if the
 *  contract has no such path. */
export function readReference(contract: Contract, place: Place, field: string): Reference {
  const type = recordTypeOf(field)
  for (const operation of contract.operations) {
    const found = findRecordOperations(contract, operation, contract.operations)
    if (found?.type === type) return toReference(found)
  }
  return fail(
    place.source,
    place.path,
    `${field} refers to no records of the contract: name it after their path, like task_id for /tasks/{task}`,
  )
}

function toReference({ type, slug, delete: deletion }: RecordOperations): Reference {
  return { type, noun: nounOf(type), slug, table: tableOf(slug), deletion }
}

type RecordOperations = NonNullable<ReturnType<typeof findRecordOperations>>
