import { operations } from '../generated/operations.ts'
import type { Context } from '../operations/context.ts'
import { jobApplicationListing } from '../records/job-applications.ts'
import { listPage } from '../records/list.ts'

export async function listJobApplications(ctx: Context<'listJobApplications'>): Promise<void> {
  const { scope, query } = ctx.state
  ctx.body = await listPage(scope, jobApplicationListing, operations.listJobApplications, query)
}
