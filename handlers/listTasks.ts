import { operations } from '../generated/operations.ts'
import { listPage, type Page } from '../records/list.ts'
import { type Task, taskListing } from '../records/tasks.ts'
import type { Call } from './call.ts'

export async function listTasks(call: Call<'listTasks'>): Promise<Page<Task>> {
  const { scope, query } = call
  return listPage(scope, taskListing, operations.listTasks, query)
}
