/** One result of lint, diff, generate --check or contract. The formats of these commands show results. */
export interface Result {
  /** Only an error fails the command. */
  level: 'error' | 'warning' | 'notice'
  /** For example `operation-id-form` or `response-property-removed`. */
  rule: string
  message: string
  /** The file is relative to the folder of the contract. Null if no line causes the result. */
  file: string | null
  line: number | null
}

/** For example `openapi.yaml:66`. Empty without a file. */
export function formatPlace({ file, line }: Pick<Result, 'file' | 'line'>): string {
  if (file === null) return ''
  return line === null ? file : `${file}:${line}`
}
