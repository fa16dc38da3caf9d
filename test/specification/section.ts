/** A sentence or table row of the specification, word for word, and the tests that verify it. */
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
