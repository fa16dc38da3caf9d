/** A sentence or table row of the specification and the tests that verify it. The quote is word for
 *  word, also where the specification has a mistake. */
export interface Row {
  quote: string
  /** Each is `test/file.test.ts > title`. Empty if the specification leaves the matter open: the
   *  quote says "not shown". */
  tests: string[]
}

export interface Section {
  title: string
  rows: Row[]
}
