/** What a list reads: no total is counted twice, and no page is skipped twice, while nothing changes. */
import { expect, test } from 'vitest'
import { type Client, sharedApp } from '../helpers.ts'
import { newParticipant } from './new-records.ts'

const app = sharedApp()

/** The total of the list, and the statements that read it. */
async function read(client: Client, query: string): Promise<{ total: number; sql: string[] }> {
  const sql: string[] = []
  const collect = (statement: { sql: string }): void => void sql.push(statement.sql)
  app.db.read.on('query', collect)
  const { body } = await client.get(`/participants?page[size]=2&${query}`)
  app.db.read.off('query', collect)
  return { total: body.meta.total, sql }
}

async function newClientWith(participants: number): Promise<Client> {
  const client = await app.newClient()
  for (let number = 0; number < participants; number++)
    await newParticipant(client, { full_name: `Ada ${number}`, tags: ['vip'] })
  return client
}

const counting = (sql: string[]): string[] =>
  sql.filter((text) => /count\(\*\).* from participants /.test(text))
const skipping = (sql: string[]): string[] => sql.filter((text) => /offset/.test(text))

test.each(['', 'filter[status]=active', 'filter[status]=active,archived'])(
  'the total of ?%s → never counted',
  async (query) => {
    const client = await newClientWith(3)
    const { total, sql } = await read(client, query)
    expect([total, counting(sql)]).toEqual([3, []])
  },
)

test('the total of another filter → counted once, and again after a change', async () => {
  const client = await newClientWith(5)
  const countings = async (query: string): Promise<[number, number]> => {
    const { total, sql } = await read(client, `filter[tag]=vip${query}`)
    return [total, counting(sql).length]
  }
  expect(await countings('')).toEqual([5, 1])
  expect(await countings('&page[number]=2')).toEqual([5, 0])
  expect(await countings('')).toEqual([5, 0])
  await newParticipant(client, { tags: ['vip'] })
  expect(await countings('&page[number]=3')).toEqual([6, 1])
  // A list with one page is not remembered.
  expect(await countings('&filter[search]=Ada 1')).toEqual([1, 1])
  expect(await countings('&filter[search]=Ada 1')).toEqual([1, 1])
})

test('a page after one that was read → starts there, unless something has changed', async () => {
  const client = await newClientWith(9)
  const skips = async (page: number): Promise<boolean> => {
    const { sql } = await read(client, `sort=full_name&page[number]=${page}`)
    return skipping(sql).length > 0
  }
  expect([await skips(1), await skips(2), await skips(3), await skips(4)]).toEqual([
    false,
    true,
    false,
    false,
  ])
  await newParticipant(client)
  expect([await skips(4), await skips(5)]).toEqual([true, false])
})
