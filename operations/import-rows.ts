/** Reads the rows of an import's file: CSV or NDJSON, one row in memory at a time. */
import { pipeline, Readable } from 'node:stream'
import { CsvError, parse } from 'csv-parse'
import { type FieldErrors, StatusError } from '../errors.ts'
import { type Resource, resources } from '../generated/resources.ts'
import type { ImportSelection } from '../records/imports.ts'
import type { Schema } from '../scripts/model/schema.ts'
import { JobFailed } from './file-job.ts'
import type { Item } from './item-steps.ts'
import { assertNotTooComplex, MAX_VALUES } from './storable.ts'

const MAX_ROW_BYTES = 1024 * 1024

/** A row of the file. */
export interface Row {
  /** The line where it begins, from 1. */
  line: number
  /** The cells of CSV, or the value of NDJSON. */
  source: unknown
  /** Undefined: the row cannot be read. */
  item?: Item
  errors?: FieldErrors
}

/** Instead of the field of a column. */
export const LEFT_OUT = '-'
/** The name in `errors` for the whole row. */
export const WHOLE_ROW = 'row'

export function importedResource(name: string): Resource {
  const found = resources.find(({ slug }) => slug.replaceAll('-', '_') === name)
  if (found === undefined) throw new Error(`There is no resource ${name}`)
  return found
}

/** Throws `JobFailed` when the file as a whole cannot be imported. */
export function readRows(
  selection: ImportSelection,
  content: AsyncIterable<Buffer>,
): AsyncGenerator<Row> {
  return selection.format === 'csv' ? csvRows(selection, content) : ndjsonRows(selection, content)
}

/** The first rows of a CSV file, as text. The first of them names the columns. */
export async function readSample(
  content: AsyncIterable<Buffer>,
  count: number,
): Promise<string[][]> {
  const rows: string[][] = []
  for await (const { cells } of csvRecords(content)) {
    rows.push(cells.map((cell) => (cell ?? '').trim()))
    if (rows.length === count) break
  }
  return rows
}

/** The fields that rows can write. */
export function writableFields({ creation, change }: Resource): string[] {
  return Object.keys({ ...creation?.properties, ...change?.properties })
}

async function* csvRows(
  selection: ImportSelection,
  content: AsyncIterable<Buffer>,
): AsyncGenerator<Row> {
  const fields = new Fields(selection)
  let columns: (Column | undefined)[] | undefined
  for await (const { cells, line } of csvRecords(content)) {
    if (columns === undefined) {
      columns = fields.columns(selection.columns ?? cells.map((cell) => (cell ?? '').trim()))
      continue
    }
    if (cells.length !== columns.length) {
      const message = `has ${cells.length} fields, but the header line ${columns.length}.`
      yield { line, source: cells, errors: { [WHOLE_ROW]: [message] } }
      continue
    }
    const data: Record<string, unknown> = {}
    for (const [index, column] of columns.entries()) {
      const value = column && fromCell(cells[index] ?? null, column.schema)
      if (column && value !== undefined) data[column.name] = value
    }
    yield { line, source: cells, ...fields.toItem(data) }
  }
  if (columns === undefined) throw new JobFailed('The file has no header line.')
}

interface CsvRecord {
  /** An empty field without quotation marks is null. */
  cells: (string | null)[]
  line: number
}

interface RawRecord {
  record: CsvRecord['cells']
  raw: string
}

async function* csvRecords(content: AsyncIterable<Buffer>): AsyncGenerator<CsvRecord> {
  const parser = parse({
    bom: true,
    cast: (value, { quoting }) => (value === '' && !quoting ? null : value),
    max_record_size: MAX_ROW_BYTES,
    raw: true,
    record_delimiter: ['\r\n', '\n'],
    relax_column_count: true,
  })
  // Errors also reach the loop below.
  pipeline(Readable.from(content), parser, () => undefined)
  let line = 1
  try {
    for await (const { record: cells, raw } of parser as AsyncIterable<RawRecord>) {
      const isBlank = cells.length === 1 && cells[0] === null
      if (!isBlank) yield { cells, line }
      // `info.lines` of the parser counts a line break in a field twice if it is \r\n. `raw` ends with
      // the first character of the delimiter.
      line += raw.slice(0, -1).split('\n').length
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    const isTooLong = error.code === 'CSV_MAX_RECORD_SIZE'
    throw new JobFailed(
      `The row at line ${line} ` +
        (isTooLong ? 'is larger than 1 MiB.' : 'is not valid CSV. Check its quotation marks.'),
    )
  }
}

async function* ndjsonRows(
  selection: ImportSelection,
  content: AsyncIterable<Buffer>,
): AsyncGenerator<Row> {
  const fields = new Fields(selection)
  let line = 0
  for await (const text of lines(content)) {
    line += 1
    if (text.trim() !== '') yield { line, ...parseRow(fields, text) }
  }
}

function parseRow(fields: Fields, text: string): Omit<Row, 'line'> {
  let source: unknown
  try {
    assertNotTooComplex(text, MAX_VALUES)
    source = JSON.parse(text)
  } catch (error) {
    const message = error instanceof StatusError ? error.message : 'is not valid JSON.'
    return { source: text, errors: { [WHOLE_ROW]: [message] } }
  }
  if (typeof source !== 'object' || source === null || Array.isArray(source))
    return { source, errors: { [WHOLE_ROW]: ['must be a JSON object.'] } }
  return { source, ...fields.toItem({ ...source }) }
}

async function* lines(content: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  let count = 0
  for await (const bytes of content) {
    const parts = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = parts.pop() ?? ''
    count += parts.length
    yield* parts
    if (rest.length > MAX_ROW_BYTES) throw new JobFailed(`Line ${count + 1} is larger than 1 MiB.`)
  }
  rest += decoder.decode()
  if (rest !== '') yield rest
}

interface Column {
  name: string
  schema: Schema
}

/** The fields that the rows of an import may have. */
class Fields {
  readonly #selection: ImportSelection
  readonly #writable: Record<string, Schema>
  /** Fields of the record that no request can write. */
  readonly #ignored: Set<string>

  constructor(selection: ImportSelection) {
    const { record, creation, change } = importedResource(selection.resource)
    this.#selection = selection
    this.#writable = { ...creation?.properties, ...change?.properties }
    const names = Object.keys(record.properties ?? {})
    this.#ignored = new Set(names.filter((name) => !(name in this.#writable)))
  }

  /** The columns with these names. Undefined for one that is ignored. Throws `JobFailed` for one that
   *  is no field, and when no column names the record to update. */
  columns(names: string[]): (Column | undefined)[] {
    const { resource, mode } = this.#selection
    const twice = names.find((name, index) => /\w/.test(name) && names.indexOf(name) !== index)
    if (twice !== undefined) throw new JobFailed(`The file has two columns ${twice}.`)
    const keys = { create: [], update: ['id', 'external_id'], upsert: ['external_id'] }[mode]
    if (keys.length > 0 && !keys.some((key) => names.includes(key)))
      throw new JobFailed(`An import with the mode ${mode} needs a column ${keys.join(' or ')}.`)
    return names.map((name) => {
      if (name === LEFT_OUT || name === '' || (this.#ignored.has(name) && !this.#isKey(name)))
        return undefined
      const schema = this.#isKey(name) ? { type: 'string' } : this.#writable[name]
      if (schema !== undefined) return { name, schema }
      const noun = resource.replaceAll('_', ' ')
      throw new JobFailed(
        `The column ${JSON.stringify(name)} is no field of ${noun}. ` +
          `Rename it, or leave it out. The fields are ${Object.keys(this.#writable).join(', ')}.`,
      )
    })
  }

  toItem(row: Record<string, unknown>): { item: Item } {
    const { id } = row
    const data = Object.fromEntries(
      Object.entries(row).filter(([name]) => !this.#ignored.has(name)),
    )
    const hasId = this.#isKey('id') && id !== undefined && id !== null
    return { item: { action: this.#selection.mode, data, ...(hasId && { id: String(id) }) } }
  }

  #isKey(name: string): boolean {
    return name === 'id' && this.#selection.mode === 'update'
  }
}

/** Text that an export with the format `csv` has escaped. */
const ESCAPED = /^'[=+\-@\t\r]/

/** Undefined: the field is left out. Text of another type stays text, which the validator refuses. */
function fromCell(cell: string | null, { type, nullable }: Schema): unknown {
  if (cell === null) return nullable ? null : undefined
  if (type === 'integer' || type === 'number')
    return /^-?\d+(\.\d+)?$/.test(cell) ? Number(cell) : cell
  if (type === 'boolean') return cell === 'true' || (cell === 'false' ? false : cell)
  if (type === 'array' || type === 'object') return parseJson(cell)
  return ESCAPED.test(cell) ? cell.slice(1) : cell
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
