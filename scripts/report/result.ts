import { type Finding, lineOf } from '../model/source.ts'

/** One result of `muster lint`, `diff`, `generate --check` or `contract`. */
export interface Result {
  /** Only an error fails the command. */
  level: 'error' | 'warning' | 'notice'
  /** For example `operation-id-form` or `response-property-removed`. */
  rule: string
  message: string
  /** Relative to the folder of the contract. Null if no file causes the result. */
  file: string | null
  /** Null if the result is about a whole file, or about no file. */
  line: number | null
  /** Shell commands that repeat the requests of a failure of `contract`. */
  details?: string
}

/** A result without `level` and `rule`, which the command adds. */
export type Remark = Pick<Result, 'file' | 'line' | 'message'>

export function toRemark(finding: Finding): Remark {
  return { file: finding.source.file, line: lineOf(finding), message: finding.problem }
}

/** For example `generated/events.ts is stale`. */
export function formatRemark(remark: Remark): string {
  return `${formatPlace(remark)} ${remark.message}`
}

/** For example `openapi.yaml:66`. Empty if `file` is null. */
export function formatPlace({ file, line }: Pick<Result, 'file' | 'line'>): string {
  if (file === null) return ''
  return line === null ? file : `${file}:${line}`
}
