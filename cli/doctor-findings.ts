/** The results of the checks of `muster doctor`. */
import { Refused } from '../errors.ts'
import { describeDatabaseError } from './database-errors.ts'
import type { Environment } from './shell.ts'

export interface Finding {
  /** A warning can wait. A problem keeps the service from working, or loses data. */
  level: 'ok' | 'warning' | 'problem'
  text: string
  /** An instruction. Null: none is necessary, or the text contains it. */
  remedy: string | null
}

export type Findings = Finding | Finding[]

/** A finding with the name of its check. */
export type NamedFinding = { check: string } & Finding

const newFinding =
  (level: Finding['level']) =>
  (text: string, remedy: string | null = null): Finding => ({ level, text, remedy })

export const ok = newFinding('ok')
export const warning = newFinding('warning')
export const problem = newFinding('problem')

/** Runs a check. An error that it throws becomes a problem. */
export async function runCheck(
  check: string,
  environment: Environment,
  find: () => Promise<Findings> | Findings,
): Promise<NamedFinding[]> {
  let found: Findings
  try {
    found = await find()
  } catch (error) {
    found = problem(describeFailure(error, environment))
  }
  return [found].flat().map((finding) => ({ check, ...finding }))
}

function describeFailure(error: unknown, environment: Environment): string {
  if (error instanceof Refused) return error.message.replaceAll('\n', ' ')
  const described = describeDatabaseError(error, environment)
  if (described !== undefined) return described
  return `The check failed: ${error instanceof Error ? error.message : error}. Report it as a defect.`
}
