/** Routes of the record pages, for every resource in generated/resources.ts. */
import { StatusError } from '../../../errors.ts'
import type { FileBody } from '../../../generated/operations.ts'
import type { Resource } from '../../../generated/resources.ts'
import { errorPage } from '../layout.ts'
import {
  type ConsolePage,
  get,
  getFromStandby,
  type PageResult,
  post,
  type Route,
  type Visit,
} from '../page.ts'
import { createRecord, newPage } from './create-record.ts'
import { deletePage, deleteRecord } from './delete-record.ts'
import { editPage, updateRecord } from './edit-record.ts'
import { canViewExported } from './export-file.ts'
import { exportListPage } from './export-list.ts'
import { plural } from './labels.ts'
import { recordListPage } from './record-list.ts'
import { recordPage } from './record-page.ts'
import { findRecord } from './references.ts'
import {
  accessTo,
  canChangeRecords,
  canDownloadFile,
  canExport,
  canViewRecords,
  findResource,
  type Item,
  resourceByOption,
} from './resources.ts'
import {
  canDelete,
  canSetStatus,
  deleteSelected,
  deleteSelectedPage,
  setStatus,
  statusPage,
} from './selection.ts'
import { setRecordStatus } from './set-status.ts'

const LIST_PATH = '/records/:resource'
const RECORD_PATH = '/records/:resource/:record'

export const recordRoutes: Route[] = [
  getFromStandby(LIST_PATH, canViewRecords, forResource(recordListPage)),
  get(`${LIST_PATH}/new`, canChangeRecords('create'), forResource(newPage)),
  post(`${LIST_PATH}/new`, canChangeRecords('create'), forResource(createRecord)),
  get(`${LIST_PATH}/set-status`, accessTo(canSetStatus), forResource(statusPage)),
  post(`${LIST_PATH}/set-status`, accessTo(canSetStatus), forResource(setStatus)),
  get(`${LIST_PATH}/delete`, accessTo(canDelete), forResource(deleteSelectedPage)),
  post(`${LIST_PATH}/delete`, accessTo(canDelete), forResource(deleteSelected)),
  get(`${LIST_PATH}/export`, accessTo(canExport), forResource(exportListPage)),
  get(RECORD_PATH, canViewRecords, forRecord(recordPage)),
  get(`${RECORD_PATH}/edit`, canChangeRecords('update'), forRecord(editPage)),
  post(`${RECORD_PATH}/edit`, canChangeRecords('update'), forRecord(updateRecord)),
  post(`${RECORD_PATH}/set-status`, canChangeRecords('update'), forRecord(setRecordStatus)),
  get(`${RECORD_PATH}/delete`, canChangeRecords('delete'), forRecord(deletePage)),
  post(`${RECORD_PATH}/delete`, canChangeRecords('delete'), forRecord(deleteRecord)),
  get(`${RECORD_PATH}/file`, canDownloadFile, forRecord(download)),
]

function forResource(handle: (visit: Visit, resource: Resource) => Promise<PageResult>) {
  return (visit: Visit): Promise<PageResult> => {
    const resource = findResource(visit.params.resource)
    return resource ? handle(visit, resource) : visit.ctx.throw(404)
  }
}

function forRecord(handle: (visit: Visit, resource: Resource, item: Item) => Promise<PageResult>) {
  return forResource(async (visit, resource) => {
    const item = await findRecord(visit, resource, visit.params.record ?? '')
    return item ? handle(visit, resource, item) : visit.ctx.throw(404)
  })
}

async function download(
  visit: Visit,
  { idParameter, operations }: Resource,
  item: Item,
): Promise<PageResult> {
  const { ctx } = visit
  if (operations.file === null) return ctx.throw(404)
  if (!canViewExported(visit.user, item)) return forbiddenFile(item)
  try {
    const { headers, stream } = (await visit.call(operations.file, {
      path: { [idParameter]: item.id },
    })) as FileBody
    const fileName = /filename="([^"]+)"/.exec(headers['Content-Disposition'] ?? '')?.[1] ?? item.id
    return { fileName, contentType: headers['Content-Type'] ?? '', content: stream, headers }
  } catch (error) {
    if (error instanceof StatusError && error.status === 403)
      return errorPage(403, 'Not allowed', error.message)
    throw error
  }
}

function forbiddenFile(item: Item): ConsolePage {
  const exported = resourceByOption(item.resource)
  return errorPage(
    403,
    'No access to this file',
    `You do not have access to ${exported ? plural(exported).toLowerCase() : 'its records'}.`,
  )
}
