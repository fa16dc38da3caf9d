/** All of a transaction or nothing, whatever its work does wrong. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest'
import { type Db, openDatabase } from '../../records/database/open.ts'
import { type Trx, transaction, withLockedRows } from '../../records/database/transaction.ts'
import { createDatabase } from '../postgres.ts'

const onPostgres = inject('database') === 'postgres'

let directory: string
let db: Db

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'muster-transaction-'))
  db = openDatabase(
    onPostgres
      ? { databaseUrl: await createDatabase(inject('postgresUrl')) }
      : { dataDir: directory },
  )
  await db.write.raw('create table notes (text varchar(10) not null unique)')
})
beforeEach(() => db.write('notes').delete())
afterAll(async () => {
  await db.close()
  await rm(directory, { recursive: true })
})

interface Rows {
  rows: { text: string }[]
}

const kept = (): Promise<string[]> => db.read('notes').orderBy('text').pluck('text')
const note = ({ sql }: Trx, text: string | null) => sql('notes').insert({ text })

test('what is written is there once it is committed, and to nobody before', async () => {
  const result = await transaction(db, async (trx) => {
    await note(trx, 'one')
    await trx.sql.raw('insert into notes (text) values (?)', ['two'])
    expect(await kept()).toEqual([])
    return 'done'
  })
  expect([result, await kept()]).toEqual(['done', ['one', 'two']])
})

test.each([
  ['throws', async () => Promise.reject(new Error('no'))],
  ['writes what cannot be', (trx: Trx) => note(trx, null)],
])('nothing is kept of a transaction that %s', async (_, fail) => {
  const written = transaction(db, async (trx) => {
    await note(trx, 'one')
    await fail(trx)
  })
  await expect(written).rejects.toThrow()
  expect(await kept()).toEqual([])
})

test('nor what was still being written when it failed', async () => {
  for (let round = 0; round < 50; round++) {
    const written = transaction(db, async (trx) => {
      await Promise.all([
        note(trx, null),
        note(trx, `a ${round}`),
        note(trx, `b ${round}`),
        note(trx, `c ${round}`),
      ])
    })
    await expect(written).rejects.toThrow(/null/i)
  }
  expect(await kept()).toEqual([])
})

test('a statement that comes after the end is refused, and is in no other transaction', async () => {
  let ended: Trx | undefined
  const begunBefore = await transaction(db, async (trx) => {
    ended = trx
    return { unsent: note(trx, 'too late') }
  })
  await transaction(db, async (trx) => {
    await note(trx, 'one')
    await expect(begunBefore.unsent).rejects.toThrow('after the end of its transaction')
    if (ended)
      await expect(note(ended, 'too late')).rejects.toThrow('after the end of its transaction')
  })
  expect(await kept()).toEqual(['one'])
})

test.runIf(onPostgres)(
  'a failure that the work does not mention is one of the transaction',
  async () => {
    const written = transaction(db, async (trx) => {
      await note(trx, 'one')
      await note(trx, null).catch(() => undefined)
    })
    await expect(written).rejects.toThrow('one of its statements had failed')
    expect(await kept()).toEqual([])
  },
)

test.runIf(onPostgres)(
  'a connection that is lost, or comes too late to be undone, is not used again',
  async () => {
    const lost = transaction(db, ({ sql }) =>
      sql.raw('select pg_terminate_backend(pg_backend_pid())'),
    )
    await expect(lost).rejects.toThrow()
    const slow = transaction(db, async ({ sql }) => {
      void sql.raw('select pg_sleep(8)').catch(() => undefined)
      throw new Error('no')
    })
    await expect(slow).rejects.toThrow('no')
    for (let number = 0; number < 5; number++)
      await transaction(db, (trx) => note(trx, String(number)))
    expect(await kept()).toEqual(['0', '1', '2', '3', '4'])
  },
)

test.runIf(onPostgres).each([
  ['awaits', async (statement: PromiseLike<Rows>) => await statement],
  ['chains', (statement: PromiseLike<Rows>) => statement.then((result) => result)],
])(
  'withLockedRows: what was read and locked stays so until it was used, by work that %s',
  async (_, result) => {
    await transaction(db, (trx) => note(trx, 'one'))
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
    expect([used, await kept()]).toEqual([[['one']], ['changed']])
  },
)

test('those who wait for the end are told of it, committed or not', async () => {
  const told: string[] = []
  await transaction(db, async (trx) => trx.onEnd(() => told.push('committed')))
  const undone = transaction(db, async (trx) => {
    trx.onEnd(() => told.push('undone'))
    throw new Error('no')
  })
  await expect(undone).rejects.toThrow('no')
  expect(told).toEqual(['committed', 'undone'])
})
