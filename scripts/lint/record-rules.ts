/** Rules that the contract tests could not check. */
import { collectionOf } from '../contract/record-kinds.ts'
import type { Contract } from '../model/contract.ts'
import type { Finding } from '../model/source.ts'
import { findBatch, readBatchWords } from '../words/batches.ts'
import { listShownOnce, readRecordWords, requestSchema, responseSchema } from '../words/records.ts'
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

/** Fields with `x-shown-once` that cannot be null in later responses. */
export function findNeverHidden(contract: Contract): Finding[] {
  return contract.operations.flatMap((operation) => {
    const { properties = {} } = responseSchema(contract, operation)
    return listShownOnce(contract, operation)
      .filter((name) => !properties[name]?.nullable)
      .map((name) => ({
        ...operation.success.place,
        problem: `${name} has x-shown-once: add nullable: true, because later responses have null`,
      }))
  })
}

/** Fields of `x-refusals`, also of `accepts` and `refuses`, that the body of the operation does not
 *  have. A rule may also name a parameter. */
export function findUnknownFields(contract: Contract): Finding[] {
  return contract.operations.flatMap((operation) => {
    const { id, place, parameters } = operation
    const { properties = {} } = requestSchema(contract, operation)
    const isParameter = (rule: string): boolean => parameters.some(({ name }) => name === rule)
    return Object.entries(readRules(operation)).flatMap(
      ([rule, { accepts = [], refuses = [] }]) => {
        const names = [...accepts, ...refuses].flatMap((body) => Object.keys(body))
        const fields = isParameter(rule) ? names : [rule.split('.')[0] ?? '', ...names]
        const unknown = fields.filter((name) => !Object.hasOwn(properties, name))
        return unknown.map((name) => ({
          source: place.source,
          path: [...place.path, 'x-refusals', rule],
          problem: `${rule} in x-refusals must name fields of the body: ${id} has no ${name}`,
        }))
      },
    )
  })
}

/** Operations that `x-batch` names and that do not create or update the records of its collection. */
export function findWrongBatches(contract: Contract): Finding[] {
  return contract.operations.flatMap((operation) => {
    const words = readBatchWords(operation)
    if (words === undefined) return []
    const { source, path } = operation.place
    const batch = findBatch(contract, operation)
    const isRight =
      batch?.create.method === 'post' &&
      batch.update.method === 'patch' &&
      collectionOf(batch.update.path) === batch.create.path
    if (isRight) return []
    const problem = `x-batch of ${operation.id} must name the operations that create and update one record`
    return [{ source, path: [...path, 'x-batch'], problem }]
  })
}
