/** Rules that the contract tests could not check. */
import { collectionOf } from '../contract/record-kinds.ts'
import type { Contract } from '../model/contract.ts'
import { inlineReferences } from '../model/references.ts'
import type { Finding } from '../model/source.ts'
import { findBatch, readBatchWords } from '../words/batches.ts'
import { readListWords } from '../words/lists.ts'
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
  const findings = contract.operations.flatMap((operation) => {
    const { properties = {} } = responseSchema(contract, operation)
    return listShownOnce(contract, operation)
      .filter((name) => !properties[name]?.nullable)
      .map((name) => ({
        ...operation.success.place,
        problem: `${name} has x-shown-once: add nullable: true, because later responses have null`,
      }))
  })
  // Several operations share a schema.
  return [...new Map(findings.map((finding) => [finding.problem, finding])).values()]
}

/** Operations whose parameter `include` has other options than `include` of `x-record`, which must name
 *  a field that is not required and, for an embedded record, the reference to it. */
export function findWrongIncludes(contract: Contract): Finding[] {
  return contract.operations.flatMap((operation) => {
    const { id, place, method, parameters } = operation
    const { properties = {}, required = [] } = responseSchema(contract, operation)
    const { include } = readRecordWords(contract, operation)
    if (method !== 'get' || include === undefined) return []
    const isRight = ([name, source]: [string, unknown]): boolean =>
      name in properties &&
      !required.includes(name) &&
      (typeof source !== 'string' || source in properties)
    const wrong = Object.entries(include).find((entry) => !isRight(entry))
    if (wrong)
      return [
        { ...place, problem: `include.${wrong[0]} of the record of ${id} must name its fields` },
      ]
    const { include: name } = readListWords(contract) ?? {}
    const parameter = parameters.find((one) => one.name === name)
    const options = parameter
      ? (inlineReferences(contract.sources, parameter.schema).items?.enum ?? [])
      : []
    const names = Object.keys(include)
    return options.join() === names.join()
      ? []
      : [
          {
            ...place,
            problem: `include of ${id} must have the options of x-record: ${names.join(', ')}`,
          },
        ]
  })
}

/** Fields of `x-refusals`, also of `accepts` and `refuses`, that the body of the operation does not
 *  have. A rule may also name a parameter. Without a body, all names are those of parameters. */
export function findUnknownFields(contract: Contract): Finding[] {
  return contract.operations.flatMap((operation) => {
    const { id, place, parameters } = operation
    const { properties = {} } = requestSchema(contract, operation)
    const isParameter = (rule: string): boolean => parameters.some(({ name }) => name === rule)
    return Object.entries(readRules(operation)).flatMap(
      ([rule, { accepts = [], refuses = [] }]) => {
        const names = [...accepts, ...refuses].flatMap((body) => Object.keys(body))
        const fields = isParameter(rule) ? names : [rule.split('.')[0] ?? '', ...names]
        const isKnown = (name: string): boolean =>
          operation.body === null ? isParameter(name) : Object.hasOwn(properties, name)
        const known = operation.body === null ? 'parameters' : 'fields of the body'
        const unknown = fields.filter((name) => !isKnown(name))
        return unknown.map((name) => ({
          source: place.source,
          path: [...place.path, 'x-refusals', rule],
          problem: `${rule} in x-refusals must name ${known}: ${id} has no ${name}`,
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
