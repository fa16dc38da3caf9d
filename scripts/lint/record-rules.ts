/** Rules that the contract tests could not check. */
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import type { Finding } from '../model/source.ts'
import { readRecordWords, requestSchema } from '../words/records.ts'
import { readRules } from '../words/refusals.ts'

/** Rows of `computed` in `x-record` that do not have a value for each of `from`, and a result. */
export function findWrongRows(contract: Contract): Finding[] {
  return contract.operations
    .filter(({ method }) => method === 'post')
    .flatMap((operation) => {
      const { computed = {} } = readRecordWords(contract, operation)
      return Object.entries(computed).flatMap(([name, { from, table }]) => {
        const row = table.findIndex(({ length }) => length !== from.length + 1)
        if (row === -1) return []
        const problem = `row ${row + 1} of computed.${name} must have ${from.length} values and the result`
        return [{ ...operation.success.place, problem }]
      })
    })
}

/** Fields of `x-refusals`, also of `accepts` and `refuses`, that the body of the operation does not
 *  have. */
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
