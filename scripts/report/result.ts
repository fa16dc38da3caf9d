/** One result of lint, diff, generate --check or contract. `--format` says how these commands print their results. */
export interface Result {
  /** Only an error fails the command. */
  level: 'error' | 'warning' | 'notice'
  /** For example `operation-id-form` or `response-property-removed`. */
  rule: string
  message: string
  /** Relative to the folder of the contract. Null if no file causes the result. */
  file: string | null
  /** Null if the result is about the whole file, or has none. */
  line: number | null
}

/** For example `openapi.yaml:66`. Empty without a file. */
export function formatPlace({ file, line }: Pick<Result, 'file' | 'line'>): string {
  if (file === null) return ''
  return line === null ? file : `${file}:${line}`
}
