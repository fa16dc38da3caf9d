/** Rules in `x-refusals` that the contract tests could not check. */
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import type { Finding } from '../model/source.ts'
import { requestSchema } from '../words/records.ts'
import { readRules } from '../words/refusals.ts'

/** Fields, also of `accepts` and `refuses`, that the body of the operation does not have. */
export function findUnknownFields(contract: Contract): Finding[] {
  return contract.operations.flatMap((operation) =>
    Object.entries(readRules(operation)).flatMap(([field, { accepts = [], refuses = [] }]) => {
      const bodies = [...accepts, ...refuses].flatMap((body) => Object.keys(body))
      return [field.split('.')[0] ?? '', ...bodies].flatMap((name) =>
        checkField(contract, operation, field, name),
      )
    }),
  )
}

function checkField(
  contract: Contract,
  operation: Operation,
  rule: string,
  name: string,
): Finding[] {
  const { id, place } = operation
  if (Object.hasOwn(requestSchema(contract, operation).properties ?? {}, name)) return []
  const path = [...place.path, 'x-refusals', rule]
  const problem = `${rule} in x-refusals must name fields of the body: ${id} has no ${name}`
  return [{ source: place.source, path, problem }]
}
