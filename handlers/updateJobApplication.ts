import { assertFound } from '../errors.ts'
import type { Body } from '../generated/operations.ts'
import { bodies, type Validator } from '../generated/validators.js'
import { findChanges } from '../records/changes.ts'
import {
  type JobApplication,
  jobApplicationListing,
  updateJobApplicationFields,
} from '../records/job-applications.ts'
import { findRecord } from '../records/list.ts'
import { applyMergePatch } from '../records/merge-patch.ts'
import { assertValid } from '../validation.ts'
import type { Call } from './call.ts'

export async function updateJobApplication(
  call: Call<'updateJobApplication'>,
): Promise<JobApplication> {
  const { scope, path, now, emit, emitUpdate, assertMatch } = call
  const current = await findRecord(scope, jobApplicationListing, path.job_application, {
    forUpdate: true,
  })
  assertFound(current, 'job application')
  assertMatch(current)

  const changes = findChanges(current, readUpdate(call, current))
  if (changes === undefined) return current
  const updated = await updateJobApplicationFields(scope, current, changes, now)
  await emitUpdate('job_application.updated', current, updated)
  if (changes.status) await emit('job_application.status_changed', current.id)
  return updated
}

/** The fields to update. Merges the answers of a merge patch with those of the record, and throws
 *  `InvalidInput` when the merged answers are too many. */
function readUpdate(
  { body, mergePatch }: Call<'updateJobApplication'>,
  { answers }: JobApplication,
): Body<'updateJobApplication'> {
  if (!mergePatch?.answers) return body
  const merged = { ...body, answers: applyMergePatch(answers, mergePatch.answers) }
  assertValid(bodies.updateJobApplication as Validator, merged)
  return merged as Body<'updateJobApplication'>
}
