/** CSV files of lists. */
import { stringify } from 'csv-stringify/sync'

/** RFC 4180, like exports. Formulas are escaped, because a spreadsheet would run them. A path or a name
 *  can contain one. */
export function csvText(rows: unknown[][]): string {
  return stringify(rows, {
    record_delimiter: '\r\n',
    quote_record_delimiter: true,
    // Quotes empty texts, which tells them from null.
    quoted_match: /^$/,
    escape_formulas: true,
  })
}
