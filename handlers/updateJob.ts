import { assertFound } from '../errors.ts'
import { findChanges } from '../records/changes.ts'
import { type Job, jobListing, updateJobFields } from '../records/jobs.ts'
import { findRecord } from '../records/list.ts'
import { withOperator } from '../records/screening.ts'
import type { Call } from './call.ts'

export async function updateJob(call: Call<'updateJob'>): Promise<Job> {
  const { scope, path, body, now, emitUpdate, assertMatch } = call
  const current = await findRecord(scope, jobListing, path.job, { forUpdate: true })
  assertFound(current, 'job')
  assertMatch(current)

  const { screening_questions: questions, ...fields } = body
  const changes = findChanges(current, {
    ...fields,
    ...(questions && { screening_questions: questions.map(withOperator) }),
  })
  if (changes === undefined) return current
  const updated = await updateJobFields(scope, current, changes, now)
  await emitUpdate('job.updated', current, updated)
  return updated
}
