/** Transactions are atomic, also when their work misuses them. */
import type { EventEmitter } from 'node:events'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, inject, test, vi } from 'vitest'
import { NOTIFY_CHANNEL, type Topic } from '../../records/database/announcements.ts'
import { uniqueViolation } from '../../records/database/errors.ts'
import { acquireConnection, releaseConnection } from '../../records/database/knex-internals.ts'
import { type Db, openDatabase } from '../../records/database/open.ts'
import { select } from '../../records/database/statements.ts'
import {
  inOneStatement,
  LockTaken,
  type Trx,
  transaction,
  transactionAfter,
  withLockedRows,
} from '../../records/database/transaction.ts'
import {
  databaseUrlOf,
  newDatabase,
  type OpenDatabase,
  openNewDatabase,
  until,
} from '../helpers.ts'

const onPostgres = inject('database') === 'postgres'

let database: OpenDatabase
let db: Db

beforeAll(async () => {
  database = await openNewDatabase()
  db = database.db
  await db.write.raw('create table notes (text varchar(10) not null unique)')
})
beforeEach(() => db.write('notes').delete())
afterAll(() => database[Symbol.asyncDispose]())

interface Rows {
  rows: { text: string }[]
}

const storedTexts = (): Promise<string[]> => db.read('notes').orderBy('text').pluck('text')
const insertNote = ({ sql }: Trx, text: string | null) => sql('notes').insert({ text })

test('shows its writes to others only after the commit', async () => {
  const result = await transaction(db, async (trx) => {
    await insertNote(trx, 'one')
    await trx.sql.raw('insert into notes (text) values (?)', ['two'])
    expect(await storedTexts()).toEqual([])
    return 'done'
  })
  expect([result, await storedTexts()]).toEqual(['done', ['one', 'two']])
})

test.each([
  ['throws', async () => Promise.reject(new Error('no'))],
  ['runs a statement that fails', (trx: Trx) => insertNote(trx, null)],
])('rolls back a transaction that %s', async (_, fail) => {
  const written = transaction(db, async (trx) => {
    await insertNote(trx, 'one')
    await fail(trx)
  })
  await expect(written).rejects.toThrow()
  expect(await storedTexts()).toEqual([])
})

test('rolls back statements that were running when another one failed', async () => {
  for (let round = 0; round < 50; round++) {
    const written = transaction(db, async (trx) => {
      await Promise.all([
        insertNote(trx, null),
        insertNote(trx, `a ${round}`),
        insertNote(trx, `b ${round}`),
        insertNote(trx, `c ${round}`),
      ])
    })
    await expect(written).rejects.toThrow(/null/i)
  }
  expect(await storedTexts()).toEqual([])
})

test('rejects a statement after the end of its transaction', async () => {
  let ended: Trx | undefined
  const earlier = await transaction(db, async (trx) => {
    ended = trx
    // knex sends a query only when it is awaited.
    return { unsent: insertNote(trx, 'too late') }
  })
  await transaction(db, async (trx) => {
    await insertNote(trx, 'one')
    await expect(earlier.unsent).rejects.toThrow('after the end of its transaction')
    if (ended)
      await expect(insertNote(ended, 'too late')).rejects.toThrow(
        'after the end of its transaction',
      )
  })
  expect(await storedTexts()).toEqual(['one'])
})

test.runIf(onPostgres)(
  'looks a row up by index, also when the table was empty at the time of the plan',
  async () => {
    await db.write.raw('vacuum analyze notes')
    const plan = await transaction(db, ({ sql }) =>
      sql.raw("explain select 1 from notes where text = 'one' for key share"),
    )
    expect(JSON.stringify(plan.rows)).toContain('Index Scan')
  },
)

test.runIf(onPostgres)('rolls back when the work ignores a failed statement', async () => {
  const written = transaction(db, async (trx) => {
    await insertNote(trx, 'one')
    await insertNote(trx, null).catch(() => undefined)
  })
  await expect(written).rejects.toThrow('one of its statements had failed')
  expect(await storedTexts()).toEqual([])
})

test.runIf(onPostgres)(
  'commits a statement that needs no transaction, and returns its connection after an error',
  async () => {
    const insert = (text: string) =>
      inOneStatement(db, ({ sql }) => select(sql, 'insert into notes (text) values (?)', [text]))
    await insert('one')
    await expect(insert('one')).rejects.toThrow('duplicate key')
    await insert('two')
    expect([await storedTexts(), db.pools().write?.used]).toEqual([['one', 'two'], 0])
  },
)

test.runIf(onPostgres)('throws the error of a COMMIT that PostgreSQL refuses', async () => {
  await db.write.raw('create table codes (code text unique deferrable initially deferred)')
  const written = transaction(db, async ({ sql }) => {
    for (let count = 0; count < 2; count++) await sql('codes').insert({ code: 'same' })
  })
  await expect(written).rejects.toMatchObject({ code: '23505' })
})

test.runIf(onPostgres)(
  'does not reuse a connection that was lost or did not roll back in time',
  async () => {
    const lost = transaction(db, ({ sql }) =>
      sql.raw('select pg_terminate_backend(pg_backend_pid())'),
    )
    await expect(lost).rejects.toThrow()
    const slow = transaction(db, async ({ sql }) => {
      // Longer than the timeout of a rollback, which is 5 s.
      void sql.raw('select pg_sleep(8)').catch(() => undefined)
      throw new Error('no')
    })
    await expect(slow).rejects.toThrow('no')
    for (let number = 0; number < 5; number++)
      await transaction(db, (trx) => insertNote(trx, String(number)))
    expect(await storedTexts()).toEqual(['0', '1', '2', '3', '4'])
  },
)

test.runIf(onPostgres).each([
  ['awaits', async (statement: PromiseLike<Rows>) => await statement],
  ['chains', (statement: PromiseLike<Rows>) => statement.then((result) => result)],
])(
  'withLockedRows keeps the rows locked until they are used, by work that %s',
  async (_, result) => {
    await transaction(db, (trx) => insertNote(trx, 'one'))
    const change = (): Promise<unknown> =>
      transaction(db, async ({ sql }) => {
        await sql.raw("set local lock_timeout = '50ms'")
        await sql.raw("update notes set text = 'changed'")
      })
    const used: string[][] = []
    await withLockedRows(
      db,
      async ({ sql }) => {
        const { rows } = await result(sql.raw('select text from notes for share'))
        await expect(change()).rejects.toThrow('lock timeout')
        return rows.map(({ text }) => text)
      },
      (texts) => void used.push(texts),
    )
    await change()
    expect([used, await storedTexts()]).toEqual([[['one']], ['changed']])
  },
)

test('calls onEnd after a commit and after a rollback', async () => {
  const calls: string[] = []
  await transaction(db, async (trx) => trx.onEnd(() => calls.push('committed')))
  const undone = transaction(db, async (trx) => {
    trx.onEnd(() => calls.push('undone'))
    throw new Error('no')
  })
  await expect(undone).rejects.toThrow('no')
  expect(calls).toEqual(['committed', 'undone'])
})

test.skipIf(onPostgres)('transactions that wait share a commit', async () => {
  const connection = await acquireConnection(db.write)
  const traced = connection as EventEmitter
  const statements: string[] = []
  traced.on('trace', (text: string) => statements.push(text))
  releaseConnection(db.write, connection)
  const texts = Array.from({ length: 20 }, (_, number) => `note ${number + 10}`)
  await Promise.all(texts.map((text) => transaction(db, (trx) => insertNote(trx, text))))
  expect(await storedTexts()).toEqual(texts)
  await until('the commit', () => statements.includes('COMMIT'))
  traced.removeAllListeners('trace')
  expect(statements.filter((text) => text === 'COMMIT').length).toBeLessThan(20)
})

test.skipIf(onPostgres).each([
  ['before it writes', async () => Promise.reject(new Error('no'))],
  ['after it has written', (trx: Trx) => insertNote(trx, null)],
])('a transaction that fails %s does not fail others with the same commit', async (_, fail) => {
  const [one, failed, two] = await Promise.allSettled([
    transaction(db, (trx) => insertNote(trx, 'one')),
    transaction(db, async (trx) => fail(trx)),
    transaction(db, (trx) => insertNote(trx, 'two')),
  ])
  expect([one.status, failed.status, two.status]).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(await storedTexts()).toEqual(['one', 'two'])
})

test.skipIf(onPostgres)(
  'a transaction that throws because of an undone change runs again',
  async () => {
    const readTexts = ({ sql }: Trx) => sql('notes').orderBy('text').pluck('text')
    let isFirst = true
    const change = async (trx: Trx) => {
      await insertNote(trx, 'one')
      if (isFirst) await insertNote(trx, 'undone')
      isFirst = false
    }
    // On a busy machine, the first transaction could be committed before the others join.
    const now = vi.spyOn(performance, 'now').mockReturnValue(performance.now())
    const [, refused, failed] = await Promise.allSettled([
      transaction(db, change),
      transaction(db, async (trx) => Promise.reject(new Error(String(await readTexts(trx))))),
      transaction(db, (trx) => insertNote(trx, null)),
    ])
    now.mockRestore()
    expect(failed.status).toBe('rejected')
    expect(refused).toMatchObject({ reason: { message: 'one' } })
    expect(await storedTexts()).toEqual(['one'])
  },
)

test.runIf(onPostgres)(
  'notifies other nodes less often than it commits, and never of a rollback',
  async () => {
    const databaseUrl = databaseUrlOf(await newDatabase())
    const node = openDatabase({ databaseUrl })
    await using listener = await listen(databaseUrl)
    const announce = (name: string) => transaction(node, async (trx) => trx.announce({ name }))
    const refused = transaction(node, (trx) => {
      trx.announce({ name: 'refused' })
      throw new Error('refused')
    })
    await expect(refused).rejects.toThrow('refused')
    await Promise.all(Array.from({ length: 100 }, () => announce('stored')))
    // The last announcement must not be lost when a command closes its database.
    await announce('last')
    await node.close()
    await until('the last topic', () => listener.topics.at(-1) === 'last')
    expect(new Set(listener.topics)).toEqual(new Set(['stored', 'last']))
    expect(listener.topics.length).toBeLessThan(100)
  },
)

async function listen(connectionString: string): Promise<AsyncDisposable & { topics: string[] }> {
  const client = new pg.Client({ connectionString })
  const topics: string[] = []
  client.on('notification', ({ payload = '' }) => topics.push(payload.split(' ')[1] ?? ''))
  await client.connect()
  await client.query(`listen ${NOTIFY_CHANNEL}`)
  return { topics, [Symbol.asyncDispose]: () => client.end() }
}

const collectNote = (trx: Trx, text: string | null) =>
  trx.insert({
    table: 'notes',
    columns: ['text'],
    rows: [{ text }],
    translate: (error) => new Error(`The note ${text} was refused`, { cause: error }),
  })

test('stores inserts before each later statement and with the commit', async () => {
  await transaction(db, async (trx) => {
    await collectNote(trx, 'one')
    await collectNote(trx, 'two')
    expect(await trx.sql('notes').orderBy('text').pluck('text')).toEqual(['one', 'two'])
    await collectNote(trx, 'three')
  })
  expect(await storedTexts()).toEqual(['one', 'three', 'two'])
})

test.each([
  ['at the end', async () => undefined],
  ['before another statement', (trx: Trx) => insertNote(trx, 'three')],
  ['before an error of the work', async () => Promise.reject(new Error('The note is refused'))],
])('rolls back when an insert fails %s', async (_, goOn) => {
  await insertNote({ sql: db.write } as unknown as Trx, 'two')
  const written = transaction(db, async (trx) => {
    await collectNote(trx, 'one')
    await collectNote(trx, 'two')
    await goOn(trx)
  })
  // On PostgreSQL, an error of the work comes before the inserts are sent.
  await expect(written).rejects.toThrow(/The note (.*was|is) refused/)
  expect(await storedTexts()).toEqual(['two'])
  // The connection can be used again.
  await transaction(db, (trx) => collectNote(trx, 'four'))
  expect(await storedTexts()).toEqual(['four', 'two'])
})

test('stores more rows than one statement takes', async () => {
  await transaction(db, async (trx) => {
    for (let number = 0; number < 1_200; number++) await collectNote(trx, String(number))
    await expect(trx.sql('notes').count({ notes: '*' })).resolves.toMatchObject([{ notes: 1_200 }])
  })
})

test.runIf(onPostgres)('locks a name until the end of the transaction', async () => {
  const locked = (work: () => Promise<unknown>) =>
    transactionAfter(db, { lock: 'a name', isIdentified: true, read: async () => 1 }, work)
  await locked(async () => {
    await expect(locked(async () => undefined)).rejects.toThrow(LockTaken)
  })
  await expect(locked(async () => 'free')).resolves.toBe('free')
})

test('rolls back when the reads of its opening fail', async () => {
  const failed = transactionAfter(
    db,
    { isIdentified: true, read: async ({ sql }) => sql.raw('select nothing from nowhere') },
    async (trx) => collectNote(trx, 'one'),
  )
  await expect(failed).rejects.toThrow('nowhere')
  await transaction(db, (trx) => collectNote(trx, 'two'))
  expect(await storedTexts()).toEqual(['two'])
})

test('a savepoint undoes its statements and announcements when it fails', async () => {
  const topic: Topic<string> = { name: 'notes', merge: (texts) => texts.join() }
  const published: unknown[] = []
  const unsubscribe = db.subscribe(topic, (payload) => published.push(payload))
  const write = async (trx: Trx, text: string) => {
    await trx.insert({ table: 'notes', columns: ['text'], rows: [{ text }] })
    trx.announce(topic, text)
  }
  const outcomes = await transaction(db, async (trx) => {
    const attempt = (...texts: string[]) =>
      trx
        .savepoint(async () => {
          for (const text of texts) await write(trx, text)
        })
        .then(() => 'done')
        .catch((error) => uniqueViolation(error))
    await write(trx, 'one')
    return [await attempt('two'), await attempt('three', 'one'), await attempt('four')]
  })
  unsubscribe()
  expect(outcomes).toEqual(['done', expect.stringContaining('text'), 'done'])
  expect(await storedTexts()).toEqual(['four', 'one', 'two'])
  expect(published).toEqual(['one,two,four'])
})

test('a failed savepoint undoes inserts that were not sent yet', async () => {
  await transaction(db, async (trx) => {
    const insert = (text: string) =>
      trx.insert({ table: 'notes', columns: ['text'], rows: [{ text }] })
    await insert('one')
    await trx
      .savepoint(async () => {
        await insert('two')
        throw new Error('no')
      })
      .catch(() => undefined)
    await insert('three')
  })
  expect(await storedTexts()).toEqual(['one', 'three'])
})
