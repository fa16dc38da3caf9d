/** Lists of an account with 1,000,000 participants, compared with the same of an account with 10,000. The filters
 *  match equally many records in both. Then walks through all pages of the large account. */
import { request } from 'undici'
import type { WriteScope } from '../../records/database/scope.ts'
import { comparison, type Result, type Round } from './result.ts'
import { startService } from './service.ts'
import { type Bench, type Environment, newAccount, withRecords } from './set-up.ts'

const PAGE_SIZE = 25
const WALK_SIZE = 100
/** How many records of each account the filters match. */
const MATCHES = 200
/** A list is fast enough if it takes less than this, whatever the other account takes. */
const FAST_MS = 5

interface Account {
  token: string
  participants: number
}

/** By name, the query of a list in an account with this many participants. */
const LISTS: Record<string, (participants: number) => string> = {
  'first page': () => '',
  'newest first': () => 'sort=-created_at',
  'by name': () => 'sort=full_name',
  'by name, descending': () => 'sort=-full_name',
  'by email': () => 'sort=email',
  'by email, descending': () => 'sort=-email',
  'by last update': () => 'sort=-updated_at',
  'filter by status': () => 'filter[status]=archived',
  'filter by tag': () => 'filter[tag]=vip',
  'filter by email': () => 'filter[email]=person.7@example.com',
  'filter by external ID': () => 'filter[external_id]=crm-7',
  'created after': (participants) =>
    `filter[created_after]=${new Date((participants - MATCHES) * 1_000).toISOString()}`,
  'filter by search': () => 'filter[search]=zebra',
  'last page': (participants) => `page[number]=${participants / PAGE_SIZE}`,
}
const DEEP_PAGE = 'random page by name'

export async function lists(bench: Bench): Promise<Result[]> {
  const environment = await bench.newEnvironment()
  const [few, many] = bench.quick ? [1_000, 10_000] : [10_000, 1_000_000]
  const small = await addAccount(environment, few)
  bench.progress(`adding ${many} participants`)
  const large = await addAccount(environment, many)
  await using service = await startService(environment)
  const url = `http://127.0.0.1:${service.port}/public/v1/participants`
  const results: Result[] = []
  for (const [name, query] of Object.entries(LISTS)) {
    bench.progress(name)
    const rounds = await compare({ bench, small, large }, (account) =>
      read(url, account, query(account.participants)),
    )
    results.push(result(name, rounds, 2))
  }
  const rounds = await compare({ bench, small, large }, (account) => {
    const page = 1 + Math.floor((Math.random() * account.participants) / PAGE_SIZE)
    return read(url, account, `sort=full_name&page[number]=${page}`)
  })
  results.push(result(DEEP_PAGE, rounds, 10))
  for (const [name, isByCursor, atLeast] of [
    ['by number', false, 0.5],
    ['by cursor', true, 0.9],
  ] as const) {
    bench.progress(`walking ${name}`)
    const walked = await walk(url, large, isByCursor)
    const what = `all pages of ${WALK_SIZE}, ${name}`
    results.push(
      comparison({ what, unit: '/s', goal: { atLeast } }, 'ratio', 'its first tenth', [walked]),
    )
  }
  return results
}

function result(what: string, rounds: Round[], atMost: number): Result {
  const found = comparison({ what, unit: 'ms' }, 'ratio', 'small account', rounds)
  const isFast = found.muster <= FAST_MS
  return isFast
    ? { ...found, compared: { by: 'value', value: found.muster }, goal: { atMost: FAST_MS } }
    : { ...found, goal: { atMost } }
}

interface Accounts {
  bench: Bench
  small: Account
  large: Account
}

/** The accounts take turns. */
async function compare(
  { bench, small, large }: Accounts,
  read: (account: Account) => Promise<unknown>,
): Promise<Round[]> {
  const measure = async (account: Account): Promise<number> => {
    const startedAt = performance.now()
    await read(account)
    return performance.now() - startedAt
  }
  const rounds: Round[] = []
  // The first rounds warm up.
  for (let round = 0; round < (bench.quick ? 6 : 33); round++)
    rounds.push({ muster: await measure(large), reference: await measure(small) })
  return rounds.slice(3)
}

interface Page {
  data: object[]
  meta: { current_page: number; last_page: number; next_cursor: string | null }
}

async function read(url: string, { token }: Account, query: string): Promise<Page> {
  const { statusCode, body } = await request(`${url}?${query}`, {
    headers: { Authorization: `Bearer ${token}` },
  })
  if (statusCode !== 200) throw new Error(`${query}: ${statusCode} ${await body.text()}`)
  return (await body.json()) as Page
}

/** The pages per second of the whole walk, and of its first tenth. */
async function walk(url: string, account: Account, isByCursor: boolean): Promise<Round> {
  const pages = account.participants / WALK_SIZE
  const startedAt = performance.now()
  const rateOf = (page: number): number => (page * 1_000) / (performance.now() - startedAt)
  let reference = 0
  let after = ''
  for (let page = 1; page <= pages; page++) {
    const start = isByCursor ? after : `&page[number]=${page}`
    const { data, meta } = await read(
      url,
      account,
      `sort=full_name&page[size]=${WALK_SIZE}${start}`,
    )
    if (data.length !== WALK_SIZE) throw new Error(`Page ${page} has ${data.length} records`)
    after = `&page[after]=${meta.next_cursor}`
    if (page === pages / 10) reference = rateOf(page)
  }
  return { muster: rateOf(pages), reference }
}

function addAccount(environment: Environment, participants: number): Promise<Account> {
  return withRecords(environment, async (trx) => {
    const { scope, token } = await newAccount(trx)
    await insertParticipants(scope, participants)
    return { token, participants }
  })
}

/** Inserts this many participants in one statement, which takes seconds. Every record with the status, the tag or the
 *  word of a filter is as far from the next one. */
export async function insertParticipants(scope: WriteScope, participants: number): Promise<void> {
  const { accountId, dialect, sql } = scope
  const digits = dialect === 'postgres' ? "lpad(to_hex(n), 8, '0')" : "printf('%08x', n)"
  const isMatch = `n % ${participants / MATCHES} = 0`
  const id = `${digits} || '-0000-7000-8000-${accountId.slice(-12)}'`
  await sql.raw(
    `with recursive numbers as (
         select cast(1 as bigint) as n union all select n + 1 from numbers where n < ${participants}
       ), people as (
         select n, 'Person ' || (n * 7919 % 1000003) || case when ${isMatch} then ' Zebra' else '' end as name,
           'person.' || n || '@example.com' as email
         from numbers
       )
       insert into participants (id, account_id, full_name, email, email_key, phone, status, tags,
         external_id, search_text, created_at, updated_at)
       select ${dialect === 'postgres' ? `cast(${id} as uuid)` : id}, ?, name, email, email, '+44 20 7946 0000',
         case when ${isMatch} then 'archived' else 'active' end,
         case when ${isMatch} then '["vip"]' else '[]' end,
         'crm-' || n, lower(name) || ? || email, n * 1000, n * 1000
       from people`,
    [accountId, '\n'],
  )
  await sql.raw(
    `insert into participant_tags (account_id, participant_id, tag)
       select account_id, id, 'vip' from participants where account_id = ? and status = 'archived'`,
    [accountId],
  )
}
