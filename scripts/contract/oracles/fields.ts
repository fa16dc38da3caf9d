/** Oracle: the parameter `fields` of `x-lists` leaves out the other fields of each record, and changes
 *  nothing else. */
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { findItemSchema, type ListWords, readListWords } from '../../words/lists.ts'
import { readPointer } from '../../words/read.ts'
import { failuresOf, show } from '../contract-broken.ts'
import { type Check, newRequest, parameterSchema, preparePath, type Run } from '../run.ts'

const broken = failuresOf('list_contents')

export function* fieldChecks(run: Run, operation: Operation): Generator<Check> {
  const words = readListWords(run.contract)
  const parameter = operation.parameters.find(({ name }) => name === words?.fields?.parameter)
  if (words === undefined || parameter === undefined) return
  const all = (parameterSchema(run, parameter).items?.enum ?? []).map(String)
  const isOdd = (_: string, index: number) => index % 2 === 1
  for (const names of [all.slice(-1), all.filter(isOdd), all])
    yield {
      what: `${parameter.name}=${names}`,
      perform: () => assertSelected(run, operation, words, { [parameter.name]: names }),
    }
}

async function assertSelected(
  run: Run,
  operation: Operation,
  { fields, items }: ListWords,
  query: Record<string, string[]>,
): Promise<void> {
  const path = await preparePath(run, operation)
  const request = newRequest(run, operation, path, { query })
  const plain = await run.send(operation, newRequest(run, operation, path))
  const { json, headers } = await run.send(operation, request)
  const names = [fields?.always.slice(1), ...Object.values(query).flat()]
  const select = (record: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(record).filter(([name]) => names.includes(name)))
  const isList = findItemSchema(run.contract, operation) !== undefined
  const recordsOf = (body: unknown) => (isList ? readPointer(body, items) : [body]) as JsonObject[]
  const [records, expected] = [recordsOf(json), recordsOf(plain.json).map(select)]
  if (!isDeepStrictEqual(records, expected))
    throw broken(request, `has ${show(records)}, not ${show(expected)}`)
  if (headers.get('etag') !== plain.headers.get('etag'))
    throw broken(request, 'has another ETag than without the parameter')
  run.tested('openapi.yaml', 'x-lists.fields')
}
