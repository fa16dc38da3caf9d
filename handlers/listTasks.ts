import { operations } from '../generated/operations.ts'
import { type ListPage, listPage } from '../records/list.ts'
import { type Task, taskListing } from '../records/tasks.ts'
import type { Call } from './call.ts'

export async function listTasks(call: Call<'listTasks'>): Promise<ListPage<Task>> {
  const { scope, query } = call
  return listPage(scope, taskListing, operations.listTasks, query)
}
