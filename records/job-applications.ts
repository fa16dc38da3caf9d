import { InvalidInput } from '../errors.ts'
import type { components } from '../generated/openapi.ts'
import type { Body } from '../generated/operations.ts'
import { assertTransition, nextUpdatedAt, type Transitions } from './changes.ts'
import { uniqueViolation } from './database/errors.ts'
import type { WriteScope } from './database/scope.ts'
import { newId } from './ids.ts'
import { jobListing } from './jobs.ts'
import { findRecord, type Listing, referred, toTimestamp } from './list.ts'
import { participantListing } from './participants.ts'
import { assertReference, toExternalIdTaken, withStoredIds } from './references.ts'
import { type ScreeningOutcome, screen } from './screening.ts'

export type JobApplication = components['schemas']['JobApplication']
type NewJobApplication = Body<'createJobApplication'>

const TRANSITIONS: Transitions<JobApplication['status']> = {
  submitted: ['shortlisted', 'rejected', 'withdrawn'],
  shortlisted: ['accepted', 'rejected', 'withdrawn'],
  accepted: [],
  rejected: [],
  withdrawn: [],
}

interface JobApplicationRow {
  id: string
  job_id: string
  participant_id: string
  status: JobApplication['status']
  answers: string
  screening_outcome: ScreeningOutcome
  external_id: string | null
  created_at: number
  updated_at: number
}

function fromRow(row: JobApplicationRow): JobApplication {
  return {
    id: row.id,
    job_id: row.job_id,
    participant_id: row.participant_id,
    status: row.status,
    answers: JSON.parse(row.answers),
    screening_outcome: row.screening_outcome,
    external_id: row.external_id,
    created_at: toTimestamp(row.created_at),
    updated_at: toTimestamp(row.updated_at),
  }
}

export const jobApplicationListing: Listing<JobApplicationRow, JobApplication> = {
  table: 'job_applications',
  fromRow,
  includes: {
    participant: referred('participant_id', participantListing),
    job: referred('job_id', jobListing),
  },
}

/** Throws `InvalidInput` for an unknown job or participant, a job that is not open, a second
 *  application of the participant for the job, or an external ID that is taken. */
export async function insertJobApplication(
  scope: WriteScope,
  input: NewJobApplication,
  now: Date,
): Promise<JobApplication> {
  const { job_id, participant_id, answers = {} } = withStoredIds(input)
  // Locked, so that the job cannot be closed or change its questions before the commit.
  const job = await findRecord(scope, jobListing, job_id, { forUpdate: true })
  if (!job) throw new InvalidInput({ job_id: ['does not name a job of your account.'] })
  if (job.status !== 'open')
    throw new InvalidInput({
      job_id: [`names a job that takes no applications: it is ${job.status}.`],
    })
  await assertReference(scope, 'participant_id', 'participants', participant_id)
  const row: JobApplicationRow = {
    id: newId(),
    job_id,
    participant_id,
    status: 'submitted',
    answers: JSON.stringify(answers),
    screening_outcome: screen(job.screening_questions, answers),
    external_id: input.external_id ?? null,
    created_at: now.getTime(),
    updated_at: now.getTime(),
  }
  await scope.insert('job_applications', row, toInvalidInput)
  return fromRow(row)
}

function toInvalidInput(error: unknown): unknown {
  return uniqueViolation(error)?.includes('participant')
    ? new InvalidInput({ participant_id: ['has already applied for this job.'] })
    : toExternalIdTaken('job application')(error)
}

/** Throws `InvalidInput` for a status that cannot follow the current one, or an external ID that is
 *  taken. */
export async function updateJobApplicationFields(
  scope: WriteScope,
  current: JobApplication,
  changes: Partial<JobApplication>,
  now: Date,
): Promise<JobApplication> {
  assertTransition(TRANSITIONS, current.status, changes.status)
  const { answers, ...columns } = changes
  const updated_at = nextUpdatedAt(current, now)
  const row = { ...columns, ...(answers && { answers: JSON.stringify(answers) }), updated_at }
  const update = scope.rows('job_applications').where({ id: current.id }).update(row)
  await update.catch((error: unknown) => {
    throw toInvalidInput(error)
  })
  return { ...current, ...changes, updated_at: toTimestamp(updated_at) }
}

export async function deleteJobApplicationRow(scope: WriteScope, id: string): Promise<void> {
  await scope.rows('job_applications').where({ id }).delete()
}
