/** Primary keys and unique indexes of tables with accounts begin with the account, and so do foreign keys between such
 *  tables: the database refuses references to rows of another account. */
import { randomUUID } from 'node:crypto'
import { expect, inject, test } from 'vitest'
import { type DatabaseSchema, readExpectedSchema } from '../../records/database/schema.ts'
import { sharedApp } from '../helpers.ts'

/** Keys without the account, by reason. */
const EXCEPTIONS: Record<string, string[]> = {
  'Sign-in, links and API keys find the account by these': [
    'users: unique (email_key)',
    'api_keys: unique (token_hash)',
    'sessions: unique (token_hash)',
    'invitations: primary key (token_hash)',
    'invitations: unique (user_id)',
  ],
  'Few rows. Sign-in and request log find and update them by ID': [
    'users: primary key (id)',
    'api_keys: primary key (id)',
    'sessions: primary key (id)',
  ],
  'The schedule, background jobs and retention find these by ID: another key would need a second index':
    [
      'attempts: primary key (delivery_id, number)',
      'audit_log: primary key (id)',
      'bulk_jobs: primary key (id)',
      'deliveries: primary key (id)',
      'events: primary key (id)',
      'held_notices: primary key (id)',
      'request_log: primary key (id)',
      'webhooks: primary key (id)',
    ],
  'PostgreSQL adds foreign keys to weekly partitions only under a long lock, and webhooks have no other':
    [
      'bulk_jobs: foreign key (webhook_id)',
      'deliveries: foreign key (webhook_id)',
      'held_notices: foreign key (webhook_id)',
    ],
  'The deletion of the user sets them to null, and must not set the account to null': [
    'bulk_jobs: foreign key (created_by)',
    'webhooks: foreign key (created_by)',
  ],
  'Nodes of the previous version find these without the account. They would read all of another key, or need a second index':
    [
      'export_chunks: primary key (export_id, position)',
      'idempotency_keys: primary key (user_id, key)',
    ],
}
/** Only a copy of the table could remove them from SQLite. */
const SQLITE_EXCEPTIONS = [
  'deliveries: foreign key (event_id)',
  'attempts: foreign key (delivery_id)',
]

const app = sharedApp()

/** The keys as `table: kind (columns)`. Leaves out foreign keys to tables without accounts. */
function listKeys(schema: DatabaseSchema): string[] {
  const hasAccount = (table = ''): boolean => 'account_id' in (schema[table]?.columns ?? {})
  return Object.entries(schema).flatMap(([table, { keys, indexes }]) => {
    const found = Object.entries({ ...keys, ...indexes }).flatMap(([name, sql]) => {
      const text = sql.toLowerCase().replaceAll(/["`]/g, '')
      if (!text.startsWith('foreign key'))
        return text.replace(/^create unique index .*? \(/, 'unique (')
      // SQLite has the columns as the name.
      const columns = /^foreign key (\(.*?\))/.exec(text)?.[1] ?? `(${name})`
      return hasAccount(/references (\w+)/.exec(text)?.[1]) ? `foreign key ${columns}` : []
    })
    const keysAlone = found.flatMap((key) => /^(primary|foreign|unique).*?\)/.exec(key)?.[0] ?? [])
    return hasAccount(table) ? keysAlone.map((key) => `${table}: ${key}`) : []
  })
}

test('keys begin with the account, apart from the listed ones', async () => {
  const dialect = inject('database')
  const keys = listKeys(await readExpectedSchema(dialect))
  expect(keys.length).toBeGreaterThan(40)
  const withoutAccount = keys.filter((key) => !key.includes('(account_id'))
  const expected = [
    ...Object.values(EXCEPTIONS).flat(),
    ...(dialect === 'sqlite' ? SQLITE_EXCEPTIONS : []),
  ]
  expect(withoutAccount.toSorted()).toEqual(expected.toSorted())
})

test('the database refuses a reference to a row of another account', async () => {
  const [own, other] = [await app.newAccount(), await app.newAccount()]
  const participant = await app.as(other).post('/participants', { full_name: 'Ada' })
  const task = await app.as(own).post('/tasks', { title: 'Call' })
  const refer = (accountId: string, id: string) =>
    app.db
      .write('tasks')
      .where({ account_id: accountId, id: task.body.id })
      .update({ participant_id: id })
  await expect(refer(own.accountId, participant.body.id)).rejects.toThrow(/foreign key/i)
  await expect(refer(own.accountId, randomUUID())).rejects.toThrow(/foreign key/i)
  const mine = await app.as(own).post('/participants', { full_name: 'Ada' })
  expect(await refer(own.accountId, mine.body.id)).toBe(1)
})
