/** The query parameters of lists. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { operations } from '../../generated/operations.ts'
import { operationIds } from '../helpers.ts'
import { type Http, PARTICIPANTS, startHttp } from './http.ts'

let http: Http
beforeAll(async () => {
  http = await startHttp()
})
afterAll(() => http[Symbol.asyncDispose]())

describe('query', () => {
  const faults: [string, string][] = [
    ['page[number]=0', 'page[number]'],
    ['page[number]=-1', 'page[number]'],
    ['page[number]=99999999999999999999', 'page[number]'],
    ['page[size]=101', 'page[size]'],
    ['page[size]=0', 'page[size]'],
    ['page[size]=abc', 'page[size]'],
    ['page[size]=', 'page[size]'],
    ['page[size]=1.5', 'page[size]'],
    ['page[size]=0x1', 'page[size]'],
    ['page[size]=1e0', 'page[size]'],
    ['page[size]=%202', 'page[size]'],
    ['page[size]=5&page[size]=5', 'page[size]'],
    ['page[foo]=1', 'page[foo]'],
    ['limit=5', 'limit'],
    ['__proto__=5', '__proto__'],
    ['__proto__=%00', '__proto__'],
    ['filter[nothing]=1', 'filter[nothing]'],
    ['filter[status]=gone', 'filter[status]'],
    ['filter[status]=active,', 'filter[status]'],
    ['filter[status]=', 'filter[status]'],
    ['filter[created_after]=yesterday', 'filter[created_after]'],
    ['filter[created_after]=2026-02-30T00:00:00Z', 'filter[created_after]'],
    ['filter[search]=a%00b', 'filter[search]'],
    ['sort=nothing', 'sort'],
    ['sort=--created_at', 'sort'],
    ['sort=', 'sort'],
  ]
  test.each(faults)('%s → 422 on %s', async (query, field) => {
    const { status, body } = await http.get(`${PARTICIPANTS}?${query}`)
    expect([status, Object.keys(body.errors ?? {})]).toEqual([422, [field]])
  })

  test('an unknown sort → 422 lists the possible values', async () =>
    expect((await http.get(`${PARTICIPANTS}?sort=age`)).body.errors.sort[0]).toMatch(
      /full_name, -full_name, email/,
    ))

  test.each(operationIds)('%s with an unknown parameter → 422', async (id) => {
    const { path, method } = operations[id]
    if (method !== 'get') return
    const { status, body } = await http.get(
      `${path.replace(/\{.*?\}/, '019cade2-11c0-7c41-8a15-2b6f9d3e4c81')}?unknown=1`,
    )
    expect([status, Object.keys(body.errors ?? {})]).toEqual([422, ['unknown']])
  })
})
