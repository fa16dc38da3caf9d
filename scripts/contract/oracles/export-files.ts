/** Oracle: the file of an export has the records of the list with the same filters. */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { type CastingFunction, parse } from 'csv-parse/sync'
import { type JsonObject, parseJson } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { type ExportFileWords, readExportFileWords } from '../../words/export-files.ts'
import { findItemSchema, type ListWords, readListWords } from '../../words/lists.ts'
import { readPointer } from '../../words/read.ts'
import { readRecordWords, requestSchema } from '../../words/records.ts'
import { assertStatus, ContractBroken, show } from '../contract-broken.ts'
import { collectionOf, findOperation } from '../record-kinds.ts'
import type { ReceivedResponse, Request } from '../request.ts'
import { type Check, newRequest, type Run, waitUntilFinished } from '../run.ts'
import { chooseFilterings, chooseTogether, type Filtering } from './list-filter-values.ts'
import { createSeeds } from './list-seeds.ts'
import { ListUnderTest, MAX_PAGES } from './list-under-test.ts'
import { assertRules } from './stored-values.ts'

/** Formulas, and text that CSV must quote. */
const TEXTS = [
  '=1+1',
  '+1',
  '-1',
  '@a',
  '\t1',
  '\r1',
  'a,"b"\r\nc',
  "'=1",
  '',
  ' a ',
  '{"a":1}',
  '😀',
]
/** More than a batch of records that the service may read at once. */
const RECORDS = 30
const MAX_TRIES = 3
/** OWASP, "CSV Injection". */
const FORMULA = /^[=+\-@\t\r]/

interface ExportUnderTest {
  operation: Operation
  create: Operation
  get: Operation
  words: ExportFileWords
}

/** A list whose records are exported. */
interface Exported {
  resource: string
  list: ListUnderTest
  words: ListWords
  /** The names of the fields, in the order of the contract. */
  fields: string[]
}

export async function* exportFileChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const { contract } = run
  const words = readExportFileWords(operation)
  const listWords = readListWords(contract)
  const itemPath = operation.path.slice(0, operation.path.lastIndexOf('/'))
  const create = findOperation(contract, 'post', collectionOf(itemPath))
  const get = findOperation(contract, 'get', itemPath)
  if (!words || !listWords || !create || !get) return
  const tested = { operation, create, get, words }
  const formats = requestSchema(contract, create).properties?.[words.format]?.enum ?? []
  for (const [resource, id] of Object.entries(words.lists)) {
    const list = contract.operations.find((one) => one.id === id)
    const schema = list && findItemSchema(contract, list)
    if (!list || !schema) throw new Error(`x-export-file names ${id}, which is no list`)
    const { earlier } = await createSeeds(run, list, list.path, {
      texts: TEXTS,
      count: RECORDS,
    })
    const underTest = new ListUnderTest(run, { operation: list, path: list.path, words: listWords })
    const fields = Object.keys(schema.properties ?? {})
    const exported = { resource, list: underTest, words: listWords, fields }
    for (const format of formats)
      yield {
        what: `${resource} as ${format}`,
        perform: () => assertExported(run, tested, exported, { format, filters: {} }),
      }
    const records = await underTest.readAll()
    const format = formats.at(-1)
    for (const filters of listExportFilters(words, underTest, records, earlier))
      yield {
        what: `${resource} with ${JSON.stringify(filters)}`,
        perform: () => assertExported(run, tested, exported, { format, filters }),
      }
  }
}

/** Each filter of the list alone, and all filters that match one record together. */
function listExportFilters(
  { filter_parameter }: ExportFileWords,
  list: ListUnderTest,
  records: unknown[],
  earlier: unknown[],
): Record<string, string>[] {
  const [start = '', end = ''] = filter_parameter.split('*')
  const tried = chooseFilterings(list, records, earlier)
  const toFilters = (filterings: Filtering[]): Record<string, string> =>
    Object.fromEntries(
      filterings.map(({ filter, values }) => {
        const { name } = filter.parameter
        return [name.slice(start.length, name.length - end.length), values.join(',')]
      }),
    )
  const alone = [...Map.groupBy(tried, ({ filter }) => filter).values()].flatMap(
    (some) => some.find(({ values }) => values.length > 1) ?? some[0] ?? [],
  )
  const { matching = [] } = chooseTogether(records, tried) ?? {}
  return [...alone.map((one) => [one]), matching].map(toFilters)
}

interface Selection {
  format: unknown
  filters: Record<string, string>
}

/** Tries again if the list has changed meanwhile. */
async function assertExported(
  run: Run,
  tested: ExportUnderTest,
  exported: Exported,
  selection: Selection,
): Promise<void> {
  const { words } = tested
  const query = Object.fromEntries(
    Object.entries(selection.filters).map(([name, value]) => [
      words.filter_parameter.replace('*', name),
      value,
    ]),
  )
  for (let tries = 1; ; tries += 1) {
    const records = await exported.list.readAll(query)
    // The list may have more records than `readAll` reads.
    if (records.length >= MAX_PAGES * exported.list.maxSize) return
    const { request, record, file } = await requestFile(run, tested, exported, selection)
    const isCsv = words.csv.includes(String(selection.format))
    const isEscaped = words.escaped.includes(String(selection.format))
    const problem =
      findSummaryProblem(words, record, file, records.length) ??
      (isCsv
        ? findCsvProblem(exported, file, records, isEscaped)
        : findJsonProblem(exported, file, records))
    if (problem === undefined) return noteTested(run, tested, { record, file })
    const isStable = isDeepStrictEqual(records, await exported.list.readAll(query))
    if (isStable || tries === MAX_TRIES)
      throw new ContractBroken('exported_files', request, problem)
  }
}

/** Counts the promises that `assertExported` tests. */
function noteTested(
  run: Run,
  { operation, get, words }: ExportUnderTest,
  { record, file }: { record: JsonObject; file: ReceivedResponse },
): void {
  for (const word of Object.keys(words)) run.tested(operation.id, `x-export-file.${word}`)
  for (const name of Object.keys(readRecordWords(run.contract, get).set_when ?? {}))
    if (record[name] !== null) run.tested(get.id, 'x-record.set_when', name)
  run.tested(get.id, 'x-record.finished_when')
  for (const name of ['Content-Disposition', 'Repr-Digest'])
    if (file.headers.has(name)) run.tested(operation.id, `header ${name.toLowerCase()}`, name)
}

async function requestFile(
  run: Run,
  { operation, create, get, words }: ExportUnderTest,
  { resource }: Exported,
  { format, filters }: Selection,
): Promise<{ request: Request; record: JsonObject; file: ReceivedResponse }> {
  const body = { [words.resource]: resource, [words.format]: format, [words.filters]: filters }
  const creation = newRequest(run, create, create.path, { body })
  const created = await run.send(create, creation)
  assertStatus(creation, created.status, {
    check: 'positive_data_acceptance',
    expected: create.success.status,
    what: 'an export',
  })
  const path = created.headers.get('location') ?? ''
  const filePath = path + operation.path.slice(operation.path.lastIndexOf('/'))
  await waitUntilFinished(run, operation, filePath)
  const request = newRequest(run, operation, filePath)
  const record = (await run.send(get, newRequest(run, get, path))).json as JsonObject
  assertRules(readRecordWords(run.contract, get), request, record)
  const file = await run.send(operation, request)
  assertStatus(request, file.status, {
    check: 'exported_files',
    expected: operation.success.status,
    what: `the file of ${show(record)}`,
  })
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

function findJsonProblem(
  { words }: Exported,
  { headers, json }: ReceivedResponse,
  records: unknown[],
): string | undefined {
  const type = headers.get('content-type')
  if (type !== 'application/json') return `the JSON has the media type ${type}`
  if (!Array.isArray(json)) return 'the file is no JSON array'
  const rows = new Map(json.map((row) => [readPointer(row, words.sort.ties), row]))
  const missing = records.find(
    (record) => !isDeepStrictEqual(rows.get(readPointer(record, words.sort.ties)), record),
  )
  if (missing === undefined && json.length === records.length) return undefined
  return `the file has ${json.length} records, the list ${records.length}; the file lacks ${show(missing)}`
}

function findCsvProblem(
  { words, fields }: Exported,
  { headers, text }: ReceivedResponse,
  records: unknown[],
  isEscaped: boolean,
): string | undefined {
  const type = headers.get('content-type')
  if (type !== 'text/csv') return `the CSV has the media type ${type}`
  const [header, ...rows] = parseCsv(text)
  if (!isDeepStrictEqual(header, fields)) return `the header line is ${show(header)}, not ${fields}`
  if (rows.length !== records.length)
    return `the file has ${rows.length} rows, but the list ${records.length} records`
  const position = fields.indexOf(words.sort.ties.slice(1))
  const byId = new Map(rows.map((row) => [row[position], row]))
  for (const record of records as JsonObject[]) {
    const row = byId.get(String(readPointer(record, words.sort.ties)))
    if (row === undefined) return `the file lacks ${show(record)}`
    const index = fields.findIndex(
      (field, column) => !isCell(row[column] ?? null, record[field] ?? null, isEscaped),
    )
    const field = fields[index] ?? ''
    if (index !== -1)
      return `${field} is ${show(row[index])} in the file, but ${show(record[field])}`
  }
  return undefined
}

/** RFC 4180. An empty field is null, and `""` is the empty text. Throws if the text is no CSV, or if
 *  a row has more or fewer columns than the first. */
function parseCsv(text: string): (string | null)[][] {
  const cast: CastingFunction = (value, { quoting }) => (value === '' && !quoting ? null : value)
  return parse(text, { record_delimiter: '\r\n', cast }) as (string | null)[][]
}

/** Whether the cell has the value. Lists and objects are JSON text. */
function isCell(cell: string | null, value: unknown, isEscaped: boolean): boolean {
  if (value === null || cell === null) return cell === value
  if (typeof value === 'object') return isDeepStrictEqual(parseJson(cell), value)
  const text = String(value)
  return cell === (isEscaped && FORMULA.test(text) ? `'${text}` : text)
}
