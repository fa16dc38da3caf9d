/** Oracle: the parameter `include` of `x-lists` adds what `include` of `x-record` says, and changes
 *  nothing else. */
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { findItemSchema, listFilters, readListWords } from '../../words/lists.ts'
import { readPointer } from '../../words/read.ts'
import {
  type Counted,
  type RecordWords,
  readRecordWords,
  responseSchema,
} from '../../words/records.ts'
import { failuresOf, show } from '../contract-broken.ts'
import { findItemOperation, idIn, listKinds, operationOf } from '../record-kinds.ts'
import {
  type Check,
  hasParameter,
  newRequest,
  parameterSchema,
  type Run,
  readRecord,
} from '../run.ts'

const broken = failuresOf('list_contents')

type Source = NonNullable<RecordWords['include']>[string]

export function* includeChecks(run: Run, operation: Operation): Generator<Check> {
  const { include: parameter = '' } = readListWords(run.contract) ?? {}
  if (!hasParameter(operation, parameter)) return
  const schema = findItemSchema(run.contract, operation) ?? responseSchema(run.contract, operation)
  const { include = {} } = (schema['x-record'] ?? {}) as RecordWords
  for (const [name, source] of Object.entries(include))
    yield {
      what: `${parameter}=${name}`,
      perform: () => assertIncluded(run, operation, { parameter, name, source }),
    }
}

async function assertIncluded(
  run: Run,
  operation: Operation,
  { parameter, name, source }: { parameter: string; name: string; source: Source },
): Promise<void> {
  const { items = '', sort } = readListWords(run.contract) ?? {}
  const get = findItemOperation(run.contract, 'get', operation.path) ?? operation
  const path = await newRecord(run, get, source)
  const isList = get !== operation
  const { created } = readRecordWords(run.contract, get)
  const newestFirst = isList && sort && { [sort.parameter]: `${sort.descending}${created}` }
  const query = { [parameter]: name, ...newestFirst }
  const request = newRequest(run, operation, isList ? operation.path : path, { query })
  const { json } = await run.send(operation, request)
  const records = (isList ? readPointer(json, items) : [json]) as JsonObject[]
  for (const record of records.slice(0, 2)) {
    const plain = await readRecord(run, get, path.replace(/[^/]+$/, String(record.id)))
    const embedded = await expectedOf(run, plain, source)
    const expected = { ...plain, ...(embedded !== undefined && { [name]: embedded }) }
    if (!isDeepStrictEqual(record, expected))
      throw broken(request, `has ${show(record)}, not ${show(expected)}`)
  }
  run.tested('openapi.yaml', 'x-lists.include')
  run.tested(get.id, 'x-record.include', name)
}

/** The path of a new record that has something to embed. */
async function newRecord({ contract, records }: Run, get: Operation, source: Source) {
  const kind = typeof source === 'string' && records.kindOf(source)
  const path = await records.newPath(get, kind ? { [source]: await records.createNew(kind) } : {})
  for (const { list, reference } of listCounted(source)) {
    const counted = listKinds(contract).find((one) => one.list?.id === list)
    if (counted) await records.createNew(counted, { [reference]: idIn(path) })
  }
  return path
}

const listCounted = (source: Source): Counted[] =>
  typeof source === 'string' ? [] : Object.values(source)

/** Undefined if the reference is null. */
async function expectedOf(run: Run, record: JsonObject, source: Source): Promise<unknown> {
  if (typeof source === 'string') {
    const collection = run.records.kindOf(source)?.collection ?? ''
    const get = findItemOperation(run.contract, 'get', collection)
    if (get === undefined || record[source] === null) return undefined
    return readRecord(run, get, `${collection}/${record[source]}`)
  }
  const counts: JsonObject = {}
  for (const [key, counted] of Object.entries(source))
    counts[key] = await countReferring(run, record, counted)
  return counts
}

/** Counts with the filters of the list, for each value of the field `by`. */
async function countReferring(
  run: Run,
  { id }: JsonObject,
  { list, reference, by }: Counted,
): Promise<JsonObject> {
  const operation = operationOf(run.contract, list)
  const { total = '' } = readListWords(run.contract)?.meta ?? {}
  const filters = listFilters(operation)
  const filterBy = (field: string) => filters.find(({ fields }) => fields[0] === field)?.parameter
  const values = filterBy(by)
  const options = values ? (parameterSchema(run, values).items?.enum ?? []) : []
  const counts: JsonObject = {}
  for (const option of options.map(String)) {
    const query = { [filterBy(reference)?.name ?? '']: id, [values?.name ?? '']: option }
    const { json } = await run.send(
      operation,
      newRequest(run, operation, operation.path, { query }),
    )
    counts[option] = readPointer(json, total)
  }
  return counts
}
