/** Oracle: the file of an export has the records of the list with the same filters. */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { type CastingFunction, parse } from 'csv-parse/sync'
import { readXlsx } from 'hucre/xlsx'
import { type JsonObject, parseJson } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { type ExportFileWords, readExportFileWords } from '../../words/export-files.ts'
import { findItemSchema } from '../../words/lists.ts'
import { readPointer } from '../../words/read.ts'
import { requestSchema, wordsOfRecord } from '../../words/records.ts'
import { ContractBroken, show } from '../contract-broken.ts'
import { collectionOf, findOperation, operationOf } from '../record-kinds.ts'
import type { ReceivedResponse, Request } from '../request.ts'
import { type Check, newRequest, type Run } from '../run.ts'
import {
  chooseFilterings,
  chooseOneEach,
  chooseTogether,
  describeFiltering,
  type Filtering,
} from './lists/list-filter-values.ts'
import { createSeeds } from './lists/list-seeds.ts'
import { ListUnderTest, MAX_PAGES } from './lists/list-under-test.ts'
import { assertAccepted } from './refused.ts'
import { createFinished } from './stored-values.ts'

const FORMULAS = ['=1+1', '+1', '-1', '@a', '\t1', '\r1', "'=1"]
/** Text that CSV must quote, or that a file could confuse with other text. */
const TEXTS = [...FORMULAS, 'a,"b"\r\nc', '', ' a ', '{"a":1}', '_x0041_', '😀']
/** More than a batch of records that the service may read at once. */
const RECORDS = 30
const MAX_TRIES = 3
/** OWASP, "CSV Injection". */
const FORMULA = /^[=+\-@\t\r]/
const CSV = 'text/csv'
const JSON_TYPE = 'application/json'
const WORKBOOK = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'
const EXTENSIONS: Record<string, string> = { [CSV]: 'csv', [JSON_TYPE]: 'json', [WORKBOOK]: 'xlsx' }

/** A list whose records are exported. */
interface ExportTest {
  run: Run
  /** Returns the file. */
  operation: Operation
  create: Operation
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
  if (!words || !create) return
  const { properties = {} } = requestSchema(contract, create)
  const maxFilters = properties[words.filters]?.maxProperties
  const formats = (properties[words.format]?.enum ?? []).map(String)
  const json = formats.find((format) => ![...words.csv, ...words.workbook].includes(format))
  for (const [resource, id] of Object.entries(words.lists)) {
    const listed = operationOf(contract, id)
    const schema = findItemSchema(contract, listed)
    if (!schema) throw new Error(`x-export-file names ${id}, which is no list`)
    const seeding = { texts: TEXTS, count: RECORDS }
    const { earlier } = await createSeeds(run, listed, listed.path, seeding)
    const list = new ListUnderTest(run, listed)
    const { include = {} } = wordsOfRecord(schema)
    const fields = Object.keys(schema.properties ?? {}).filter((name) => !(name in include))
    const test = { run, operation, create, words, resource, list, fields }
    const selections: Selection[] = [
      ...formats.map((format) => ({ format, filterings: [] })),
      { format: words.csv[0], filterings: [], columns: [fields.at(-1) ?? '', fields[0] ?? ''] },
      ...chooseFilters(list, await list.readAll(), earlier).map((filterings) => ({
        format: json,
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
  format: string | undefined
  filterings: Filtering[]
  /** With the ID of the record. Undefined: all fields. */
  columns?: string[]
}

/** Each filter of the list alone, and all filters that match one record together. */
function chooseFilters(list: ListUnderTest, records: unknown[], earlier: unknown[]): Filtering[][] {
  const tried = chooseFilterings(list, records, earlier)
  // Several values before one.
  const ordered = tried.toSorted((a, b) => b.values.length - a.values.length)
  const { matching = [] } = chooseTogether(records, tried) ?? {}
  return [...chooseOneEach(ordered).map((alone) => [alone]), matching]
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
      (await findContentProblem(test, selection, file, records))
    if (problem === undefined) return noteTested(test, record, file)
    const isStable = isDeepStrictEqual(records, await list.readAll(query))
    if (isStable || tries === MAX_TRIES)
      throw new ContractBroken('exported_files', request, problem)
  }
}

/** Counts the promises that `assertExported` tests. */
function noteTested(
  { run, operation, create, words }: ExportTest,
  record: JsonObject,
  file: ReceivedResponse,
): void {
  for (const name of Object.keys(record[words.filters] ?? {}))
    run.tested(create.id, 'body optional', `${words.filters}.${name}`)
  for (const word of Object.keys(words)) run.tested(operation.id, `x-export-file.${word}`)
  for (const name of ['Content-Disposition', 'Repr-Digest'])
    if (file.headers.has(name)) run.tested(operation.id, `header ${name.toLowerCase()}`, name)
}

async function requestFile(
  { run, operation, create, words, resource }: ExportTest,
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
  const { path, record } = await createFinished(run, create, creation)
  const filePath = path + operation.path.slice(operation.path.lastIndexOf('/'))
  const request = newRequest(run, operation, filePath)
  const file = await assertAccepted(run, operation, request, `the file of ${show(record)}`)
  return { request, record, file }
}

function findSummaryProblem(
  words: ExportFileWords,
  record: JsonObject,
  { bytes, headers }: ReceivedResponse,
  rows: number,
): string | undefined {
  const digest = createHash('sha256').update(bytes).digest()
  const expected = {
    [words.rows]: rows,
    [words.bytes]: bytes.length,
    [words.sha256]: digest.toString('hex'),
  }
  const name = Object.keys(expected).find((field) => record[field] !== expected[field])
  if (name !== undefined)
    return `${name} is ${show(record[name])} instead of ${show(expected[name])}`
  const [header, value] = [headers.get('repr-digest'), `sha-256=:${digest.toString('base64')}:`]
  if (header !== null && header !== value) return `Repr-Digest is ${header}, not ${value}`
  const extension = EXTENSIONS[headers.get('content-type') ?? '']
  // RFC 6266: quotes are optional, and other parameters can follow.
  const form = new RegExp(`^attachment; *filename="?[^";/]+\\.${extension}"?(;|$)`, 'i')
  const file = headers.get('content-disposition')
  if (file === null || form.test(file)) return undefined
  return `Content-Disposition is ${file}, not an attachment whose name ends with .${extension}`
}

async function findContentProblem(
  { words, fields: allFields, list }: ExportTest,
  { format = '', columns: fields = allFields }: Selection,
  { headers, bytes, text, json }: ReceivedResponse,
  records: JsonObject[],
): Promise<string | undefined> {
  const isCsv = words.csv.includes(format)
  const isWorkbook = words.workbook.includes(format)
  const isEscaped = words.escaped.includes(format)
  const type = headers.get('content-type')
  const expectedType = isCsv ? CSV : isWorkbook ? WORKBOOK : JSON_TYPE
  if (type !== expectedType) return `the file has the media type ${type}, not ${expectedType}`
  const table = isCsv ? parseCsv(text) : isWorkbook ? await readWorkbook(bytes) : undefined
  const [header, ...lines] = table ?? [fields]
  if (!isDeepStrictEqual(header, fields)) return `the header line is ${show(header)}, not ${fields}`
  const rows = table === undefined ? json : lines.map((cells) => toRow(fields, cells))
  if (!Array.isArray(rows)) return 'the file is no JSON array'
  if (rows.length !== records.length)
    return `the file has ${rows.length} records, but the list ${records.length}`
  const idOf = (row: JsonObject) => String(readPointer(row, list.words.sort.ties))
  const rowsById = new Map(rows.map((row) => [idOf(row), row]))
  for (const record of records) {
    const row: JsonObject | undefined = rowsById.get(idOf(record))
    if (row === undefined) return `the file lacks ${show(record)}`
    const isSame = (name: string): boolean => {
      const [cell, value] = [row[name] ?? null, record[name] ?? null]
      if (isCsv) return isCell(cell, value, isEscaped)
      return isWorkbook ? isWorkbookCell(cell, value) : isDeepStrictEqual(row[name], record[name])
    }
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

/** The rows of its only sheet. Throws if the bytes are no workbook. */
async function readWorkbook(bytes: Buffer): Promise<unknown[][]> {
  const { sheets } = await readXlsx(bytes)
  return sheets.length === 1 ? (sheets[0]?.rows ?? []) : []
}

function toRow(fields: string[], cells: unknown[]): JsonObject {
  return Object.fromEntries(fields.map((name, column) => [name, cells[column]]))
}

/** Whether the cell of a CSV file has the value. Lists and objects are JSON text. */
function isCell(cell: unknown, value: unknown, isEscaped: boolean): boolean {
  if (value === null || cell === null) return cell === value
  if (typeof value === 'object') return isDeepStrictEqual(parseJson(String(cell)), value)
  const text = String(value)
  return cell === (isEscaped && FORMULA.test(text) ? `'${text}` : text)
}

/** Whether the cell of a workbook has the value: as its own type, or as text. A workbook has no empty
 *  text. */
function isWorkbookCell(cell: unknown, value: unknown): boolean {
  if (typeof value === 'object' && value !== null)
    return isDeepStrictEqual(parseJson(String(cell)), value)
  return (cell ?? '') === (value ?? '')
}
