/** Records: lists, their pages, and what is done to them. What there is comes from the contract: see generated/resources.ts. */

import { StatusError } from '../../../errors.ts'
import type { FileBody } from '../../../generated/operations.ts'
import type { Resource } from '../../../generated/resources.ts'
import { errorPage } from '../layout.ts'
import { type Answer, get, type Page, post, type Route, type Visit } from '../page.ts'
import { create, newPage } from './create-record.ts'
import { deletePage, remove } from './delete-record.ts'
import { change, editPage } from './edit-record.ts'
import { mayHave } from './export-file.ts'
import { plural } from './labels.ts'
import { listPage } from './record-list.ts'
import { detailPage } from './record-page.ts'
import { findItem } from './references.ts'
import { doing, downloading, findResource, type Item, namedBy, seeing } from './resources.ts'

const LIST = '/records/:resource'
const ONE = '/records/:resource/:record'

export const recordRoutes: Route[] = [
  get(LIST, seeing, of(listPage)),
  get(`${LIST}/new`, doing('create'), of(newPage)),
  post(`${LIST}/new`, doing('create'), of(create)),
  get(ONE, seeing, ofOne(detailPage)),
  get(`${ONE}/edit`, doing('update'), ofOne(editPage)),
  post(`${ONE}/edit`, doing('update'), ofOne(change)),
  get(`${ONE}/delete`, doing('delete'), ofOne(deletePage)),
  post(`${ONE}/delete`, doing('delete'), ofOne(remove)),
  get(`${ONE}/file`, downloading, ofOne(download)),
]

function of(handle: (visit: Visit, resource: Resource) => Promise<Answer>) {
  return (visit: Visit): Promise<Answer> => {
    const resource = findResource(visit.params.resource)
    return resource ? handle(visit, resource) : visit.ctx.throw(404)
  }
}

function ofOne(handle: (visit: Visit, resource: Resource, item: Item) => Promise<Answer>) {
  return of(async (visit, resource) => {
    const item = await findItem(visit, resource, visit.params.record ?? '')
    return item ? handle(visit, resource, item) : visit.ctx.throw(404)
  })
}

async function download(visit: Visit, { type, operations }: Resource, item: Item): Promise<Answer> {
  const { ctx } = visit
  if (operations.file === null) return ctx.throw(404)
  if (!mayHave(visit.user, item)) return notTheirs(item)
  try {
    const { headers, stream } = (await visit.call(operations.file, {
      path: { [type]: item.id },
    })) as FileBody
    const fileName = /filename="([^"]+)"/.exec(headers['Content-Disposition'] ?? '')?.[1] ?? item.id
    return { fileName, contentType: headers['Content-Type'] ?? '', content: stream, headers }
  } catch (error) {
    if (error instanceof StatusError && error.status === 403)
      return errorPage(403, 'This cannot be done', error.message)
    throw error
  }
}

function notTheirs(item: Item): Page {
  const held = namedBy(item.resource)
  return errorPage(
    403,
    'This file is not for you',
    `You have no permission to see ${held ? plural(held).toLowerCase() : 'what is in it'}.`,
  )
}
