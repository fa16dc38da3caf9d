import { InvalidInput } from '../errors.ts'
import type { components } from '../generated/openapi.ts'
import type { Body } from '../generated/operations.ts'
import { assertTransition, nextUpdatedAt, type Transitions } from './changes.ts'
import type { Scope, WriteScope } from './database/scope.ts'
import { idIn, select } from './database/statements.ts'
import { newId } from './ids.ts'
import { type Listing, toTimestamp } from './list.ts'
import { countNoun, countRows, toExternalIdTaken } from './references.ts'
import { withOperator } from './screening.ts'
import { containing, foldText } from './search.ts'

export type Job = components['schemas']['Job']
type JobApplicationStatus = components['schemas']['JobApplicationStatus']
type NewJob = Body<'createJob'>

const TRANSITIONS: Transitions<Job['status']> = {
  draft: ['open', 'closed'],
  open: ['closed'],
  closed: ['open'],
}

interface JobRow {
  id: string
  title: string
  description: string
  status: Job['status']
  screening_questions: string
  external_id: string | null
  created_at: number
  updated_at: number
}

function fromRow(row: JobRow): Job {
  return {
    id: row.id,
    title: row.title,
    description: row.description,
    status: row.status,
    screening_questions: JSON.parse(row.screening_questions),
    external_id: row.external_id,
    created_at: toTimestamp(row.created_at),
    updated_at: toTimestamp(row.updated_at),
  }
}

type JobCounts = components['schemas']['JobCounts']

/** The number of job applications with each status, by the ID of the job. */
async function readCounts(scope: Scope, ids: string[]): Promise<Map<string, JobCounts>> {
  const { sql, bindings } = idIn(scope.dialect, ids, 'job_id')
  const rows = await select<{ id: string; status: JobApplicationStatus; total: number }>(
    scope.sql,
    `select job_id as id, status, count(*) as total from job_applications
     where account_id = ? and ${sql}
     group by job_id, status`,
    [scope.accountId, ...bindings],
  )
  const newCounts = () => ({ submitted: 0, shortlisted: 0, accepted: 0, rejected: 0, withdrawn: 0 })
  const counts = new Map(ids.map((id) => [id, { job_applications: newCounts() }]))
  for (const { id, status, total } of rows)
    Object.assign(counts.get(id)?.job_applications ?? {}, { [status]: Number(total) })
  return counts
}

export const jobListing: Listing<JobRow, Job> = {
  table: 'jobs',
  fromRow,
  filters: { search: (value, scope) => containing(scope, 'jobs', value) },
  includes: { counts: { field: 'id', read: readCounts } },
}

const searchText = ({ title, description }: Pick<Job, 'title' | 'description'>): string =>
  foldText(`${title}\n${description}`)

const toTaken = toExternalIdTaken('job')

/** Throws `InvalidInput` when the external ID is taken. */
export async function insertJob(scope: WriteScope, input: NewJob, now: Date): Promise<Job> {
  const questions = (input.screening_questions ?? []).map(withOperator)
  const row: JobRow = {
    id: newId(),
    title: input.title,
    description: input.description ?? '',
    status: input.status ?? 'draft',
    screening_questions: JSON.stringify(questions),
    external_id: input.external_id ?? null,
    created_at: now.getTime(),
    updated_at: now.getTime(),
  }
  const job = fromRow(row)
  await scope.insert('jobs', { ...row, search_text: searchText(job) }, toTaken)
  return job
}

/** Throws `InvalidInput` for a status that cannot follow the current one, or an external ID that is
 *  taken. */
export async function updateJobFields(
  scope: WriteScope,
  current: Job,
  changes: Partial<Job>,
  now: Date,
): Promise<Job> {
  assertTransition(TRANSITIONS, current.status, changes.status)
  const { screening_questions: questions, ...columns } = changes
  const changed = { ...current, ...changes }
  const updated_at = nextUpdatedAt(current, now)
  const row = {
    ...columns,
    ...(questions && { screening_questions: JSON.stringify(questions) }),
    search_text: searchText(changed),
    updated_at,
  }
  const update = scope.rows('jobs').where({ id: current.id }).update(row)
  await update.catch((error: unknown) => {
    throw toTaken(error)
  })
  return { ...changed, updated_at: toTimestamp(updated_at) }
}

/** Throws `InvalidInput` while the job has applications. */
export async function deleteJobRow(scope: WriteScope, id: string): Promise<void> {
  const applications = await countRows(scope, 'job_applications', { job_id: id })
  if (applications > 0)
    throw new InvalidInput({
      job: [
        `still has ${countNoun(applications, 'job application')}. Delete them first, or close the job.`,
      ],
    })
  await scope.rows('jobs').where({ id }).delete()
}
