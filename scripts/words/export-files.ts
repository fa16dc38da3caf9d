/** `x-export-file` of an operation of openapi.yaml: what the file of an export has. */
import type { Operation } from '../model/operations.ts'
import { readWord } from './read.ts'

/** The values of `resource`, `filters`, `format`, `columns`, `rows`, `bytes` and `sha256` are names of fields of
 *  the export. */
export interface ExportFileWords {
  resource: string
  /** By the value of `resource`: the ID of the operation that lists the records of the file. */
  lists: Record<string, string>
  filters: string
  /** The parameter of the list for a filter: `*` stands for the name of the filter. */
  filter_parameter: string
  format: string
  /** The values of `format` for CSV with a header line. */
  csv: string[]
  /** The values of `format` for which an apostrophe precedes text that could be a formula. */
  escaped: string[]
  /** The values of `format` for a workbook (Office Open XML) with one sheet, whose first row has the names
   *  of the fields. The other values stand for a JSON array. */
  workbook: string[]
  /** The field with the names of the columns. */
  columns: string
  rows: string
  bytes: string
  /** In hexadecimal. */
  sha256: string
}

/** Undefined if the operation does not return the file of an export. */
export function readExportFileWords({ place }: Operation): ExportFileWords | undefined {
  return readWord(place, 'x-export-file')
}
