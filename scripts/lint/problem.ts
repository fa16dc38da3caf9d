export interface LintProblem {
  file: string
  /** `line` and `column` count from 1. */
  line: number
  column: number
  rule: string
  /** The problem and how to correct it. */
  message: string
}
