import { operations } from '../generated/operations.ts'
import { type Import, importListing } from '../records/imports.ts'
import { type ListPage, listPage } from '../records/list.ts'
import type { Call } from './call.ts'

export async function listImports(call: Call<'listImports'>): Promise<ListPage<Import>> {
  const { scope, query } = call
  return listPage(scope, importListing, operations.listImports, query)
}
