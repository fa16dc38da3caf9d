/** The query parameters of lists. */
import { describe, expect, test } from 'vitest'
import { operationExample, UNKNOWN_ID } from '../handlers/new-records.ts'
import { operationIds, operationOf } from '../helpers.ts'
import { PARTICIPANTS, sharedHttp } from './http.ts'

const http = sharedHttp()

describe('query', () => {
  const invalid: [string, string][] = [
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
    ['filter[id]=null', 'filter[id]'],
    ['filter[external_id]=', 'filter[external_id]'],
    ['filter[external_id]=a,,b', 'filter[external_id]'],
    ['filter[external_id]=a&filter[external_id][]=a', 'filter[external_id]'],
    [`filter[external_id]=${[...Array(101).keys()]}`, 'filter[external_id]'],
    ['sort=nothing', 'sort'],
    ['sort=--created_at', 'sort'],
    ['sort=', 'sort'],
  ]
  test.each(invalid)('%s → 422 on %s', async (query, field) => {
    const { status, body } = await http.get(`${PARTICIPANTS}?${query}`)
    expect([status, Object.keys(body.errors ?? {})]).toEqual([422, [field]])
  })

  test('an unknown sort → 422 lists the possible values', async () =>
    expect((await http.get(`${PARTICIPANTS}?sort=age`)).body.errors.sort[0]).toMatch(
      /full_name, -full_name, email/,
    ))

  // The body of createImport is a file, which comes before the parameters.
  const others = operationIds.filter((id) => id !== 'createImport')
  test.each(others)('%s with an unknown parameter → 422', async (id) => {
    const { path, method } = operationOf(id)
    const url = `${path.replace(/\{.*?\}/, UNKNOWN_ID)}?unknown=1`
    const example = operationExample(operationOf(id))
    const { status, body } = await http.call(method.toUpperCase(), url, { body: example })
    expect([status, Object.keys(body.errors ?? {})]).toEqual([422, ['unknown']])
  })
})
