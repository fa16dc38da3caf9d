/** Migrations of databases with rows that Muster has not stored. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { insertAccount } from '../../records/accounts.ts'
import { migrate } from '../../records/database/migrate.ts'
import { readMigrations } from '../../records/database/migration-files.ts'
import type { Db } from '../../records/database/open.ts'
import { transaction } from '../../records/database/transaction.ts'
import { openNewDatabase } from '../helpers.ts'

const ACCOUNT_FIRST_KEYS = '202611281102_account_first_keys.ts'
const TIMES = { created_at: 1, updated_at: 1 }

/** Runs the migrations before the one with the name. */
async function migrateUntil({ write }: Db, end: string): Promise<void> {
  await write.schema.createTable('migrations', (table) => {
    table.text('name').primary()
    table.text('checksum').notNullable()
    table.bigInteger('applied_at').notNullable()
  })
  for (const { name, checksum, load } of await readMigrations()) {
    if (name >= end) return
    const { up, isConcurrent } = await load()
    await (isConcurrent ? up(write) : write.transaction((trx) => up(trx)))
    await write('migrations').insert({ name, checksum, applied_at: 1 })
  }
}

async function newAccount(db: Db): Promise<string> {
  const email = `${randomUUID()}@example.com`
  const account = { name: 'Test', email, fullName: 'Test Owner', passwordHash: 'none' }
  return (await transaction(db, (trx) => insertAccount(trx, account, new Date()))).accountId
}

test('a row that refers to another account: the migration says what to do, and succeeds after that', async () => {
  await using database = await openNewDatabase()
  const { db } = database
  await migrateUntil(db, '202611281100')
  const [own, other] = [await newAccount(db), await newAccount(db)]
  const participant = { id: randomUUID(), account_id: other, full_name: 'Ada', status: 'active' }
  await db.write('participants').insert({ ...participant, tags: '[]', search_text: '', ...TIMES })
  const task = { id: randomUUID(), account_id: own, title: 'Call', description: '', status: 'open' }
  await db.write('tasks').insert({ ...task, participant_id: participant.id, ...TIMES })

  for (let times = 0; times < 2; times++) {
    const error = await migrate(db).catch((thrown) => thrown)
    expect(error).toMatchObject({ name: 'Refused' })
    expect(error.message).toMatch(
      new RegExp(
        `^The migration ${ACCOUNT_FIRST_KEYS} has changed nothing\\. (A row|Row 1) of the table tasks .*\\. ` +
          'Correct or delete the row, with psql or sqlite3\\. Then run the command again\\.$',
      ),
    )
  }
  await db.write('tasks').update({ participant_id: null })
  expect(await migrate(db)).toContain(ACCOUNT_FIRST_KEYS)
})
