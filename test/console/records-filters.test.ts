/** Lists of records by each sort and filter, compared with the API. */
import { beforeAll, describe, expect, it } from 'vitest'
import { type OperationRow, operations } from '../../generated/operations.ts'
import { resources } from '../../generated/resources.ts'
import type { Body } from '../handlers/new-records.ts'
import { type Client, sharedApp } from '../helpers.ts'
import { filterCasesFor, minuteToMs, type Seeded, seedAll } from '../resources.ts'
import { mainText, recordIdsIn } from './forms.ts'
import { apiPath, newOwner, type Owner } from './record-forms.ts'

let clock = minuteToMs(0)
let owner: Owner
let seeded: Seeded
const app = sharedApp({ now: () => new Date(clock) })
beforeAll(async () => {
  const seed = (client: Client): Promise<Seeded> =>
    seedAll(client, (minute) => {
      clock = minuteToMs(minute)
    })
  // Another account with the same records, which no list may contain.
  await seed((await newOwner(app)).client)
  owner = await newOwner(app)
  seeded = await seed(owner.client)
})

describe.each(resources)('the list of $slug', (resource) => {
  const { slug } = resource
  const { sorts, filters, query } = operations[resource.operations.list] as OperationRow

  /** Expects that the page lists the records of the API in the order of the API, by default the newest
   *  first. Returns the page and the number of its records. */
  async function expectSameList(query: string): Promise<{ page: string; count: number }> {
    const page = await owner.visits.get(`/records/${slug}?${query}`)
    const order = query.startsWith('sort=') ? '' : '&sort=-created_at'
    const { data, meta } = (await owner.client.get(`${apiPath(resource)}?${query}${order}`)).body
    expect(page.status, query).toBe(200)
    expect(recordIdsIn(page.text, slug), query).toEqual(data.map(({ id }: Body) => id))
    if (meta.total > 0) expect(mainText(page.text)).toContain(`of ${meta.total} `)
    return { page: page.text, count: data.length }
  }

  it.each(sorts.flatMap((sort) => [sort, `-${sort}`]))(
    'by sort=%s: the records of the API in the same order, and the form selects the sort',
    async (sort) => {
      const { page, count } = await expectSameList(`sort=${sort}`)
      expect(count).toBe(seeded[resource.type]?.length)
      expect(page).toContain(`value="${sort}" selected`)
    },
  )

  it.each(Object.keys(filters))(
    'by filter[%s]: the records of the API, and the form has the filter',
    async (name) => {
      let matches = 0
      for (const [input] of filterCasesFor(resource.operations.list)[name] ?? []) {
        const text = typeof input === 'string' ? input : input(seeded)
        // The form has one value of free text: a comma is a part of it.
        const isFreeText = query[`filter[${name}]`]?.type === 'text_list'
        for (const value of isFreeText ? text.split(',') : [text]) {
          const { page, count } = await expectSameList(`filter[${name}]=${value}`)
          expect(page).toContain(`name="filter[${name}]"`)
          matches += count
        }
      }
      expect(matches).toBeGreaterThan(0)
    },
  )
})
