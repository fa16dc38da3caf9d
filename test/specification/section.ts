/** A sentence or table row, word for word, and the tests that hold it. */
export interface Row {
  quote: string
  /** Each is `test/file.test.ts > title`. None if the specification leaves the matter open ("not
   *  shown"). */
  tests: string[]
}

export interface Section {
  title: string
  rows: Row[]
}
