/** What a list reads: no total is counted twice, and no page is skipped twice, while nothing changes. */
import { expect, test } from 'vitest'
import { type Client, sharedApp } from '../helpers.ts'
import { type Body, expectSuccess, newParticipant } from './new-records.ts'

const app = sharedApp()

const idOf = ({ id }: Body): string => id

interface Read {
  total: number
  ids: string[]
  /** The statements. */
  sql: string[]
}

async function read(client: Client, query: string, path = '/participants'): Promise<Read> {
  const sql: string[] = []
  const collect = (statement: { sql: string }): void => void sql.push(statement.sql)
  app.db.read.on('query', collect)
  const { body } = await client.get(`${path}?page[size]=2&${query}`)
  app.db.read.off('query', collect)
  return { total: body.meta.total, ids: body.data.map(idOf), sql }
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

test('the total of deliveries, also of a webhook and of those delivered → read from counts', async () => {
  const account = await app.newAccount()
  const client = app.as(account)
  const body = { url: 'https://example.com/', event_types: ['participant.created'] }
  const newWebhook = async (): Promise<string> =>
    (await expectSuccess(client.post('/webhooks', body))).id
  const [one, other] = [await newWebhook(), await newWebhook()]
  for (let number = 0; number < 3; number++) await newParticipant(client)
  const rows = () =>
    app.db.write('deliveries').where({ account_id: account.accountId, webhook_id: one })
  await rows().update({ state: 'delivered', next_attempt_at: null })
  const totalOf = async (query: string): Promise<[total: number, counted: string]> => {
    const { total, sql } = await read(client, query, '/deliveries')
    const text = sql.find((one) => /count\(\*\).* from deliveries /s.test(one)) ?? 'none'
    return [total, /^none$|state <> 'delivered'/.exec(text)?.[0] ?? 'all']
  }
  const webhook = `filter[webhook_id]=${one.toUpperCase()}`
  const delivered = 'filter[state]=delivered'
  const undelivered = "state <> 'delivered'"
  expect(await totalOf('')).toEqual([6, 'none'])
  expect(await totalOf(webhook)).toEqual([3, 'none'])
  expect(await totalOf(delivered)).toEqual([3, undelivered])
  expect(await totalOf(`${delivered}&${webhook}`)).toEqual([3, undelivered])
  expect(await totalOf(`${delivered}&filter[webhook_id]=${other}`)).toEqual([0, undelivered])
  expect(await totalOf(`${delivered},pending`)).toEqual([6, 'all'])
  expect(await totalOf(`${delivered}&filter[event_type]=webhook.test`)).toEqual([0, 'all'])
  const [last] = (await client.get('/deliveries?sort=-id&page[size]=1')).body.data
  await app.db.write('deliveries').where({ id: last.id }).delete()
  expect(await totalOf('')).toEqual([5, 'none'])
})

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

test.each(['', 'filter[status]=active', 'sort=-email'])(
  'the last pages of ?%s → read from the last record backwards, and none past the end',
  async (query) => {
    const client = await newClientWith(9)
    const ids = (await client.get(`/participants?page[size]=9&${query}`)).body.data.map(idOf)
    const pages: [number, boolean, string[]][] = [
      [2, false, ids.slice(2, 4)],
      [3, false, ids.slice(4, 6)],
      [4, true, ids.slice(6, 8)],
      [5, true, ids.slice(8)],
      [6, true, []],
    ]
    // From the last page on, so that no page starts at one that was read.
    for (const [page, isFromEnd, data] of pages.reverse()) {
      const found = await read(client, `${query}&page[number]=${page}`)
      expect(found).toMatchObject({ total: 9, ids: data })
      const skips = skipping(found.sql).map((text) => /record_counts/.test(text))
      expect(skips).toEqual(data.length === 0 ? [] : [isFromEnd])
    }
  },
)
