/** Every statement of the service on a table of accounts names the account, apart from those in
 *  `OF_ALL_ACCOUNTS`. Collects the statements that the service sends to PostgreSQL during the tests of
 *  a file. After the tests, has PostgreSQL plan each of them, and reads from the plan whether it limits
 *  each of these tables to an account. */
import pg from 'pg'
import { afterAll, expect, inject } from 'vitest'
import { service } from './as-service.ts'

/** The statements on all accounts, without quotation marks. */
const OF_ALL_ACCOUNTS: Record<string, RegExp[]> = {
  'Schedule of attempts': [
    /from deliveries where queued_at is null and next_attempt_at > 0 and next_attempt_at (<=|>) \$1/,
    /^with recursive backlog\(webhook_id\)/,
    /from deliveries where queued_at is not null and next_attempt_at (<=|>) \$1/,
    /from deliveries where webhook_id not in \(select id from webhooks where suspended_at is not null\)/,
    /^select min\(\( select next_attempt_at from deliveries where webhook_id = webhooks.id/,
  ],
  'Sweeps: lost jobs, stuck ordering keys, attempts that are scheduled too late, slow and dead webhooks':
    [
      /from deliveries where next_attempt_at <= \$1 and queued_at <= \$2/,
      /from deliveries where deliveries.ordering_key is not null/,
      /^update deliveries set next_attempt_at = \$1, queued_at = \$2 where id in/,
      /case when state = 'retrying' then case attempts when 1 then/,
      /has_succeeded from webhooks join/,
      /from webhook_health join webhooks/,
    ],
  'Operational events: the accounts that get them, and the health of their webhooks': [
    /from webhooks where deleted_at is null and enabled and event_types like/,
    /from webhooks where id in \(select webhook_id from held_notices\)/,
  ],
  'Background jobs: the due ones, and the one that the queue names by its ID': [
    /^select id from (exports|imports) where status in \('queued', 'processing'\) and \(lease/,
    /^update (exports|imports) set status = \$1, tries = tries \+ 1, .* where id = /,
    /^select (id|\*) from bulk_jobs where (id = \$1 and )?state = /,
  ],
  'Sign-in, and look-up of an API key': [
    /from api_keys join users .* where api_keys.token_hash = /,
    /^update api_keys set last_used_at/,
    /from users .*where email_key = /,
    /from sessions join users .*where token_hash = /,
    /^update sessions set (last_seen_at|notice) = \$1 where id = /,
    /from invitations .*where invitations.token_hash = /,
  ],
  Retention: [
    /^delete from \w+ where .* in \(select [\w, ]+ from \w+ where .* limit \$\d+\)$/,
    /^select (id|delivery_id) from \w+ where \w+ > \$1 and \w+ < \$2 order by/,
    /^(delete|select (event_)?id) from (deliveries|events|attempts) where (event_id|delivery_id|id) in/,
    /^update deliveries set event_id = \$1 where event_id in/,
    /^update imports set file_removed_at = /,
    /^select account_id as accountId, id as id from exports where file_removed_at is null/,
  ],
  'Figures and checks for operators, and the rotation of the secret key': [
    /^select state, count\(\*\) as (count|webhooks) from/,
    /^select count\(\*\) as total from (bulk_jobs|webhooks|accounts)/,
    /from webhooks where deleted_at is null and id > \$1/,
  ],
}

/** The statements, and a database on which each was sent. */
const sent = new Map<string, string>()

const query = pg.Client.prototype.query
// biome-ignore lint/suspicious/noExplicitAny: `query` has many signatures.
pg.Client.prototype.query = function (this: pg.Client, ...input: any[]): any {
  const text = input[0]?.text ?? input[0]
  if (service.getStore() && typeof text === 'string' && isOfSharedServer(this))
    sent.set(text, this.database ?? '')
  return (query as (...values: unknown[]) => unknown).apply(this, input)
}

/** Some tests start servers of their own, and stop them. */
function isOfSharedServer({ port }: pg.Client): boolean {
  return inject('database') === 'postgres' && String(port) === new URL(inject('postgresUrl')).port
}

afterAll(async () => {
  // The next file of this process collects its own.
  pg.Client.prototype.query = query
  const problems: string[] = []
  for (const [database, entries] of Map.groupBy(sent, ([, name]) => name)) {
    const texts = entries.map(([text]) => text)
    problems.push(...(await listUnlimited(database, texts)))
  }
  expect(problems, 'These statements do not name the account').toEqual([])
})

/** The statements that do not name the account, after the tables that they do not limit to one.
 *  `database`: the name of a database of this version. */
export async function listUnlimited(database: string, texts: string[]): Promise<string[]> {
  const connectionString = Object.assign(new URL(inject('postgresUrl')), {
    pathname: database,
  }).href
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    // Other tests send the same statements, and their plans have one name for each table.
    if (await hasPartitions(client)) return []
    const tables = await listTables(client)
    // A plan for any values: with null, PostgreSQL would leave parts of the statement out.
    await client.query('set plan_cache_mode = force_generic_plan')
    const problems: string[] = []
    for (const text of texts.map(toOneLine)) {
      const isOnTables =
        /^(select|with|update|delete|insert)\b/.test(text) &&
        tables.some((name) => new RegExp(`\\b${name}\\b`).test(text))
      if (!isOnTables || isOfAllAccounts(text)) continue
      const aliases = findUnlimited(await explain(client, text), tables)
      if (aliases.length > 0) problems.push(`${aliases.join(', ')} in: ${text}`)
    }
    return problems
  } finally {
    await client.end()
  }
}

const toOneLine = (text: string): string =>
  text.replaceAll(/--.*$/gm, '').replaceAll(/\s+/g, ' ').trim()

function isOfAllAccounts(text: string): boolean {
  const unquoted = text.replaceAll('"', '')
  return Object.values(OF_ALL_ACCOUNTS)
    .flat()
    .some((part) => part.test(unquoted))
}

async function hasPartitions(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query(`select 1 from pg_class where relkind = 'p' limit 1`)
  return rows.length > 0
}

/** The tables with the ID of the account. */
async function listTables(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select table_name as name from information_schema.columns
     where table_schema = current_schema() and column_name = 'account_id'`,
  )
  return rows.map(({ name }) => name)
}

interface PlanNode {
  'Relation Name'?: string
  Alias?: string
  Operation?: string
  Plans?: PlanNode[]
  [property: string]: unknown
}

async function explain(client: pg.Client, text: string): Promise<PlanNode> {
  const count = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)))
  const values = count === 0 ? '' : `(${Array(count).fill('null').join(', ')})`
  await client.query(`prepare collected as ${text}`)
  try {
    const { rows } = await client.query(`explain (verbose, format json) execute collected${values}`)
    return rows[0]['QUERY PLAN'][0].Plan
  } finally {
    await client.query('deallocate collected')
  }
}

const CONDITIONS = [
  'Filter',
  'Index Cond',
  'Recheck Cond',
  'Join Filter',
  'Hash Cond',
  'Merge Cond',
]

/** The aliases of the tables that the plan reads, and that it does not limit to an account. */
function findUnlimited(plan: PlanNode, tables: string[]): string[] {
  const aliases = new Set<string>()
  const equalities: [string, string][] = []
  const visit = (node: PlanNode): void => {
    // The node that writes has a child that reads the rows to write.
    if (node.Operation === undefined && tables.includes(node['Relation Name'] ?? ''))
      aliases.add(node.Alias ?? '')
    for (const name of CONDITIONS)
      for (const [, left = '', right = ''] of String(node[name] ?? '').matchAll(
        /([^\s()]+) = (\S+)/g,
      ))
        equalities.push([left, right.replace(/\)+$/, '')], [right.replace(/\)+$/, ''), left])
    node.Plans?.forEach(visit)
  }
  visit(plan)
  // An equality with a column of another of these tables counts once that table is limited.
  for (let size = -1; size !== aliases.size; ) {
    size = aliases.size
    for (const [column, value] of equalities) {
      const [alias = '', name] = column.split('.')
      if (name === 'account_id' && !aliases.has(value.split('.')[0] ?? '')) aliases.delete(alias)
    }
  }
  return [...aliases]
}
