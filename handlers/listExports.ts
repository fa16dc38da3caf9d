import { operations } from '../generated/operations.ts'
import { type Export, exportListing } from '../records/exports.ts'
import { type ListPage, listPage } from '../records/list.ts'
import type { Call } from './call.ts'

export async function listExports(call: Call<'listExports'>): Promise<ListPage<Export>> {
  const { scope, query } = call
  return listPage(scope, exportListing, operations.listExports, query)
}
