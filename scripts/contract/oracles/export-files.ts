/** Oracle: the file of an export has the records of the list with the same filters. */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { type CastingFunction, parse } from 'csv-parse/sync'
import { type JsonObject, parseJson } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { type ExportFileWords, readExportFileWords } from '../../words/export-files.ts'
import { findItemSchema } from '../../words/lists.ts'
import { readPointer } from '../../words/read.ts'
import { readRecordWords, requestSchema, wordsOfRecord } from '../../words/records.ts'
import { ContractBroken, show } from '../contract-broken.ts'
import { collectionOf, findOperation } from '../record-kinds.ts'
import type { ReceivedResponse, Request } from '../request.ts'
import { type Check, newRequest, type Run, waitUntilFinished } from '../run.ts'
import {
  chooseFilterings,
  chooseTogether,
  describeFiltering,
  type Filtering,
} from './list-filter-values.ts'
import { createSeeds } from './list-seeds.ts'
import { ListUnderTest, MAX_PAGES } from './list-under-test.ts'
import { assertAccepted } from './refused.ts'
import { assertRules } from './stored-values.ts'

const FORMULAS = ['=1+1', '+1', '-1', '@a', '\t1', '\r1', "'=1"]
/** Text that CSV must quote, or that it could confuse with other text. */
const TEXTS = [...FORMULAS, 'a,"b"\r\nc', '', ' a ', '{"a":1}', '😀']
/** More than a batch of records that the service may read at once. */
const RECORDS = 30
const MAX_TRIES = 3
/** OWASP, "CSV Injection". */
const FORMULA = /^[=+\-@\t\r]/

/** A list whose records are exported. */
interface ExportTest {
  run: Run
  /** Returns the file. */
  operation: Operation
  create: Operation
  get: Operation
  words: ExportFileWords
  resource: string
  list: ListUnderTest
  /** The names of the fields, in the order of the contract. */
  fields: string[]
}

export async function* exportFileChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const { contract } = run
  const words = readExportFileWords(operation)
  const itemPath = operation.path.slice(0, operation.path.lastIndexOf('/'))
  const create = findOperation(contract, 'post', collectionOf(itemPath))
  const get = findOperation(contract, 'get', itemPath)
  if (!words || !create || !get) return
  const { properties = {} } = requestSchema(contract, create)
  const maxFilters = properties[words.filters]?.maxProperties
  const formats = (properties[words.format]?.enum ?? []).filter(
    (format) => !words.binary.includes(String(format)),
  )
  for (const [resource, id] of Object.entries(words.lists)) {
    const listed = contract.operations.find((one) => one.id === id)
    const schema = listed && findItemSchema(contract, listed)
    if (!listed || !schema) throw new Error(`x-export-file names ${id}, which is no list`)
    const seeding = { texts: TEXTS, count: RECORDS }
    const { earlier } = await createSeeds(run, listed, listed.path, seeding)
    const list = new ListUnderTest(run, listed)
    const { include = {} } = wordsOfRecord(schema)
    const fields = Object.keys(schema.properties ?? {}).filter((name) => !(name in include))
    const test = { run, operation, create, get, words, resource, list, fields }
    const selections: Selection[] = [
      ...formats.map((format) => ({ format, filterings: [] })),
      { format: words.csv[0], filterings: [], columns: [fields.at(-1) ?? '', fields[0] ?? ''] },
      ...chooseFilters(list, await list.readAll(), earlier).map((filterings) => ({
        format: formats.at(-1),
        filterings: filterings.slice(0, maxFilters),
      })),
    ]
    for (const selection of selections) {
      const { format, filterings, columns = [] } = selection
      yield {
        what: [`${resource} as ${format}`, ...columns, ...filterings.map(describeFiltering)].join(
          ', ',
        ),
        perform: () => assertExported(test, selection),
      }
    }
  }
}

interface Selection {
  format: unknown
  filterings: Filtering[]
  /** With the ID of the record. Undefined: all fields. */
  columns?: string[]
}

/** Each filter of the list alone, and all filters that match one record together. */
function chooseFilters(list: ListUnderTest, records: unknown[], earlier: unknown[]): Filtering[][] {
  const tried = chooseFilterings(list, records, earlier)
  // Several values before one.
  const ordered = tried.toSorted((a, b) => b.values.length - a.values.length)
  const alone = [...Map.groupBy(ordered, ({ filter }) => filter).values()]
  const { matching = [] } = chooseTogether(records, tried) ?? {}
  return [...alone.map((some) => some.slice(0, 1)), matching]
}

/** Tries again if the list has changed meanwhile. */
async function assertExported(test: ExportTest, selection: Selection): Promise<void> {
  const { list } = test
  const query = Object.fromEntries(
    selection.filterings.map(({ filter, values }) => [filter.parameter.name, values.join(',')]),
  )
  for (let tries = 1; ; tries += 1) {
    const records = (await list.readAll(query)) as JsonObject[]
    // The list may have more records than `readAll` reads.
    if (records.length >= MAX_PAGES * list.maxSize) return
    const { request, record, file } = await requestFile(test, selection, query)
    const problem =
      findSummaryProblem(test.words, record, file, records.length) ??
      findContentProblem(test, selection, file, records)
    if (problem === undefined) return noteTested(test, record, file)
    const isStable = isDeepStrictEqual(records, await list.readAll(query))
    if (isStable || tries === MAX_TRIES)
      throw new ContractBroken('exported_files', request, problem)
  }
}

/** Counts the promises that `assertExported` tests. */
function noteTested(
  { run, operation, get, words }: ExportTest,
  record: JsonObject,
  file: ReceivedResponse,
): void {
  for (const word of Object.keys(words))
    if (word !== 'binary') run.tested(operation.id, `x-export-file.${word}`)
  for (const name of Object.keys(readRecordWords(run.contract, get).set_when ?? {}))
    if (record[name] !== null) run.tested(get.id, 'x-record.set_when', name)
  run.tested(get.id, 'x-record.finished_when')
  for (const name of ['Content-Disposition', 'Repr-Digest'])
    if (file.headers.has(name)) run.tested(operation.id, `header ${name.toLowerCase()}`, name)
}

async function requestFile(
  { run, operation, create, get, words, resource }: ExportTest,
  { format, columns }: Selection,
  query: Record<string, string>,
): Promise<{ request: Request; record: JsonObject; file: ReceivedResponse }> {
  const [start = '', end = ''] = words.filter_parameter.split('*')
  const filters = Object.fromEntries(
    Object.entries(query).map(([name, value]) => [
      name.slice(start.length, name.length - end.length),
      value,
    ]),
  )
  const body = {
    [words.resource]: resource,
    [words.format]: format,
    [words.filters]: filters,
    [words.columns]: columns,
  }
  const creation = newRequest(run, create, create.path, { body })
  const created = await assertAccepted(run, create, creation, 'an export')
  const path = created.headers.get('location') ?? ''
  const filePath = path + operation.path.slice(operation.path.lastIndexOf('/'))
  await waitUntilFinished(run, operation, filePath)
  const request = newRequest(run, operation, filePath)
  const record = (await run.send(get, newRequest(run, get, path))).json as JsonObject
  assertRules(readRecordWords(run.contract, get), request, record)
  const file = await assertAccepted(run, operation, request, `the file of ${show(record)}`)
  return { request, record, file }
}

function findSummaryProblem(
  words: ExportFileWords,
  record: JsonObject,
  { text, headers }: ReceivedResponse,
  rows: number,
): string | undefined {
  const digest = createHash('sha256').update(text).digest()
  const expected = {
    [words.rows]: rows,
    [words.bytes]: Buffer.byteLength(text),
    [words.sha256]: digest.toString('hex'),
  }
  const name = Object.keys(expected).find((field) => record[field] !== expected[field])
  if (name !== undefined)
    return `${name} is ${show(record[name])} instead of ${show(expected[name])}`
  const [header, value] = [headers.get('repr-digest'), `sha-256=:${digest.toString('base64')}:`]
  if (header !== null && header !== value) return `Repr-Digest is ${header}, not ${value}`
  const extension = headers.get('content-type')?.split('/')[1]
  // RFC 6266: quotes are optional, and other parameters can follow.
  const form = new RegExp(`^attachment; *filename="?[^";/]+\\.${extension}"?(;|$)`, 'i')
  const file = headers.get('content-disposition')
  if (file === null || form.test(file)) return undefined
  return `Content-Disposition is ${file}, not an attachment whose name ends with .${extension}`
}

function findContentProblem(
  { words, fields: allFields, list }: ExportTest,
  { format, columns: fields = allFields }: Selection,
  { headers, text, json }: ReceivedResponse,
  records: JsonObject[],
): string | undefined {
  const isCsv = words.csv.includes(String(format))
  const isEscaped = words.escaped.includes(String(format))
  const [type, expectedType] = [
    headers.get('content-type'),
    isCsv ? 'text/csv' : 'application/json',
  ]
  if (type !== expectedType) return `the file has the media type ${type}, not ${expectedType}`
  const [header, ...lines] = isCsv ? parseCsv(text) : [fields]
  if (!isDeepStrictEqual(header, fields)) return `the header line is ${show(header)}, not ${fields}`
  const rows = isCsv ? lines.map((cells) => toRow(fields, cells)) : json
  if (!Array.isArray(rows)) return 'the file is no JSON array'
  if (rows.length !== records.length)
    return `the file has ${rows.length} records, but the list ${records.length}`
  const idOf = (row: JsonObject) => String(readPointer(row, list.words.sort.ties))
  const rowsById = new Map(rows.map((row) => [idOf(row), row]))
  for (const record of records) {
    const row: JsonObject | undefined = rowsById.get(idOf(record))
    if (row === undefined) return `the file lacks ${show(record)}`
    const isSame = (name: string): boolean =>
      isCsv
        ? isCell(row[name] ?? null, record[name] ?? null, isEscaped)
        : isDeepStrictEqual(row[name], record[name])
    const names = fields === allFields ? Object.keys({ ...row, ...record }) : fields
    const wrong = names.find((name) => !isSame(name))
    if (wrong !== undefined)
      return `${wrong} is ${show(row[wrong])} in the file, but ${show(record[wrong])}`
  }
  return undefined
}

/** RFC 4180. An empty field is null, and `""` is the empty text. Throws if the text is no CSV, or if
 *  a row has more or fewer columns than the first. */
function parseCsv(text: string): (string | null)[][] {
  const cast: CastingFunction = (value, { quoting }) => (value === '' && !quoting ? null : value)
  return parse(text, { record_delimiter: '\r\n', cast }) as (string | null)[][]
}

function toRow(fields: string[], cells: (string | null)[]): JsonObject {
  return Object.fromEntries(fields.map((name, column) => [name, cells[column]]))
}

/** Whether the cell has the value. Lists and objects are JSON text. */
function isCell(cell: unknown, value: unknown, isEscaped: boolean): boolean {
  if (value === null || cell === null) return cell === value
  if (typeof value === 'object') return isDeepStrictEqual(parseJson(String(cell)), value)
  const text = String(value)
  return cell === (isEscaped && FORMULA.test(text) ? `'${text}` : text)
}
