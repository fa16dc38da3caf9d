/** Rules of requests that JSON Schema cannot express, and that are checked without reading a
 *  record. The service, the console and the mock check them together with the schemas. */
import { InvalidInput } from '../errors.ts'
import type { Body, OperationId } from '../generated/operations.ts'
import { assertExportColumns, assertExportFilters } from '../records/exports.ts'
import { assertScreeningQuestions } from '../records/screening.ts'
import { assertDueTime } from '../records/tasks.ts'

type BodyRules = { [Id in OperationId]?: (body: Body<Id>) => void }

const BODY_RULES: BodyRules = {
  createTask: assertDueTime,
  updateTask: assertDueTime,
  createJob: ({ screening_questions = [] }) => assertScreeningQuestions(screening_questions),
  updateJob: ({ screening_questions = [] }) => assertScreeningQuestions(screening_questions),
  createExport(body) {
    assertExportFilters(body)
    assertExportColumns(body)
  },
}

/** Throws `InvalidInput`. Call it with a body that its schema has accepted. */
export function assertBodyRules<Id extends OperationId>(id: Id, body: unknown): void {
  BODY_RULES[id]?.(body as Body<Id>)
}

/** Throws `InvalidInput` on `field`. No email has a space, but `+` in a URL stands for one. */
export function assertEmailFilter(email: unknown, field: string): void {
  if (typeof email === 'string' && email.trim().includes(' '))
    throw new InvalidInput({ [field]: ['must not contain a space. In a URL, write + as %2B.'] })
}

/** Throws `InvalidInput` on `field` for a sort that names a field twice. */
export function assertDistinctSorts(sorts: unknown, field: string): void {
  if (!Array.isArray(sorts)) return
  const fields = sorts.map((sort) => String(sort).replace(/^-/, ''))
  if (new Set(fields).size < fields.length)
    throw new InvalidInput({ [field]: ['must not name a field twice.'] })
}

/** Throws `InvalidInput` on `page[after]` for a query that has a page number, too. Call it before
 *  the validation, which fills in the number of the first page. */
export function assertOnePage(query: Record<string, unknown>): void {
  if (query['page[after]'] !== undefined && query['page[number]'] !== undefined)
    throw new InvalidInput({ 'page[after]': ['must not be combined with page[number].'] })
}
