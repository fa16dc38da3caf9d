import { operations } from '../generated/operations.ts'
import type { Context } from '../operations/context.ts'
import { jobListing } from '../records/jobs.ts'
import { listPage } from '../records/list.ts'

export async function listJobs(ctx: Context<'listJobs'>): Promise<void> {
  const { scope, query } = ctx.state
  ctx.body = await listPage(scope, jobListing, operations.listJobs, query)
}
