/** Oracle: the rows of an import are accepted and refused as single requests are. */
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { readDefault } from '../../model/schema.ts'
import { type ImportWords, readImportWords } from '../../words/imports.ts'
import { requestSchema } from '../../words/records.ts'
import { fieldErrors } from '../../words/refusals.ts'
import { ContractBroken, show } from '../contract-broken.ts'
import { operationOf } from '../record-kinds.ts'
import { type Request, toSearch } from '../request.ts'
import { type Check, newRequest, parameterSchema, parametersIn, type Run } from '../run.ts'
import { objectMutations } from '../values/invalid-values.ts'
import { assertAccepted } from './refused.ts'
import { createFinished } from './stored-values.ts'

const NDJSON = 'application/x-ndjson'
const CSV = 'text/csv'
/** More than one transaction of the service may take. */
const VALID_ROWS = 3
const MAX_INVALID_ROWS = 30

export function* importChecks(run: Run, operation: Operation): Generator<Check> {
  const words = readImportWords(operation)
  if (words === undefined) return
  for (const [resource, id] of Object.entries(words.creates))
    yield { what: resource, perform: () => assertSameVerdicts(run, operation, words, resource, id) }
  yield {
    what: 'a file with a column that is no field',
    async perform() {
      const request = failingImport(run, operation)
      const { record } = await createFinished(run, operation, request)
      assertDefaults(run, operation, request, record)
    },
  }
}

/** Imports a file with a column that is no field, so no row has an effect. Leaves out the parameters
 *  that have defaults. */
export function failingImport(run: Run, operation: Operation): Request {
  const { trial = {}, resource = '', creates = {} } = readImportWords(operation) ?? {}
  const optional = defaultsOf(run, operation).map(([name]) => name)
  const required = Object.entries(trial).filter(([name]) => !optional.includes(name))
  const query = { ...Object.fromEntries(required), [resource]: Object.keys(creates)[0] }
  return newImport(run, operation, query, { mediaType: CSV, text: 'not_a_field\n1\n' })
}

/** The query parameters that have defaults, with these. */
function defaultsOf(run: Run, operation: Operation): [name: string, value: unknown][] {
  return parametersIn(operation, 'query')
    .map((parameter): [string, unknown] => [
      parameter.name,
      readDefault(parameterSchema(run, parameter)),
    ])
    .filter(([, value]) => value !== undefined)
}

/** Throws unless the import has the defaults in the fields that are named like parameters. */
function assertDefaults(
  run: Run,
  operation: Operation,
  request: Request,
  record: JsonObject,
): void {
  for (const [name, value] of defaultsOf(run, operation)) {
    if (!(name in record)) continue
    if (!isDeepStrictEqual(record[name], value))
      throw new ContractBroken(
        'stored_values',
        request,
        `${name} is ${show(record[name])} instead of its default ${show(value)}`,
      )
    run.tested(operation.id, 'parameter default', name)
  }
}

/** Imports valid and invalid rows as a trial, then sends each row alone. */
async function assertSameVerdicts(
  run: Run,
  operation: Operation,
  words: ImportWords,
  resource: string,
  id: string,
): Promise<void> {
  const create = operationOf(run.contract, id)
  const errors = operationOf(run.contract, words.errors)
  const rows = await newRows(run, create)
  const text = rows.map((row) => `${JSON.stringify(row)}\n`).join('')
  const query = { ...words.trial, [words.resource]: resource }
  const request = newImport(run, operation, query, { mediaType: NDJSON, text })
  const { path, record } = await createFinished(run, operation, request)
  const refusals = await readRefusals(run, errors, path)
  let refused = 0
  for (const [index, row] of rows.entries()) {
    const single = newRequest(run, create, create.path, { body: row })
    const response = await run.send(create, single)
    const isAccepted = response.status === create.success.status
    if (!isAccepted) refused += 1
    const expected = isAccepted ? undefined : fieldErrors(run.contract, create, response)
    const found = refusals.get(index + 1)
    if (!isDeepStrictEqual(Object.keys(expected ?? {}), Object.keys(found ?? {})))
      throw new ContractBroken(
        'imported_rows',
        request,
        `row ${index + 1} has the errors ${show(found)}, but alone ${show(expected)}`,
        [single],
      )
  }
  const counts = [record[words.created], record[words.refused]]
  if (!isDeepStrictEqual(counts, [rows.length - refused, refused]))
    throw new ContractBroken('imported_rows', request, `the counts are ${show(counts)}`)
  run.tested(operation.id, 'x-import')
}

async function newRows(run: Run, create: Operation): Promise<JsonObject[]> {
  const rows: JsonObject[] = []
  while (rows.length < VALID_ROWS) rows.push((await run.records.validBody(create)) ?? {})
  const mutations = objectMutations(requestSchema(run.contract, create))
  const step = Math.ceil(mutations.length / MAX_INVALID_ROWS)
  for (const { applyTo } of mutations.filter((_, index) => index % step === 0)) {
    const row = applyTo(structuredClone(rows[0] ?? {}))
    if (typeof row === 'object' && row !== null && !Array.isArray(row)) rows.push(row as JsonObject)
  }
  return rows
}

/** A request with exactly these parameters. */
function newImport(
  run: Run,
  operation: Operation,
  query: JsonObject,
  { mediaType, text }: { mediaType: string; text: string },
): Request {
  const example = newRequest(run, operation, operation.path)
  const path = `${operation.path}?${toSearch(Object.entries(query))}`
  return { ...example, path, headers: { 'Content-Type': mediaType }, body: text }
}

/** The errors of the refused rows, by their line. */
async function readRefusals(
  run: Run,
  errors: Operation,
  path: string,
): Promise<Map<number, object>> {
  const request = newRequest(run, errors, `${path}/${errors.path.split('/').at(-1)}`)
  const file = await assertAccepted(run, errors, request, 'the refused rows')
  if (file.headers.has('content-disposition'))
    run.tested(errors.id, 'header content-disposition', 'Content-Disposition')
  const lines = file.text.split('\n').filter((line) => line !== '')
  return new Map(
    lines.map((line) => JSON.parse(line)).map(({ line, errors: found }) => [line, found]),
  )
}
