/** The result of one check of `muster doctor`. */
import { Refused } from '../errors.ts'
import { describeDatabaseError } from './database-errors.ts'
import type { Environment } from './shell.ts'

export interface Finding {
  check: string
  /** A warning can wait. A problem keeps the service from working, or loses data. */
  level: 'ok' | 'warning' | 'problem'
  text: string
  /** An instruction. Null: none is necessary, or the text contains it. */
  remedy: string | null
}

export const ok = (check: string, text: string): Finding => ({
  check,
  level: 'ok',
  text,
  remedy: null,
})

export const warning = (check: string, text: string, remedy: string | null = null): Finding => ({
  check,
  level: 'warning',
  text,
  remedy,
})

export const problem = (check: string, text: string, remedy: string | null = null): Finding => ({
  check,
  level: 'problem',
  text,
  remedy,
})

/** A check that fails is a problem itself. */
export async function runCheck(
  check: string,
  environment: Environment,
  find: () => Promise<Finding[]>,
): Promise<Finding[]> {
  try {
    return await find()
  } catch (error) {
    return [problem(check, describeFailure(error, environment))]
  }
}

function describeFailure(error: unknown, environment: Environment): string {
  if (error instanceof Refused) return error.message.replaceAll('\n', ' ')
  const described = describeDatabaseError(error, environment)
  if (described !== undefined) return described
  return `The check failed: ${error instanceof Error ? error.message : error}. Report it as a defect.`
}
