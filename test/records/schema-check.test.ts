/** The comparison of a database with the schema that this version needs. */
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { migrate } from '../../records/database/migrate.ts'
import { assertSchema } from '../../records/database/schema-difference.ts'
import { checkSchema } from '../../server/schema-check.ts'
import { openNewDatabase } from '../helpers.ts'

test.each(['cockroachdb', 'yugabytedb'])('a database on %s is not compared', async (backend) => {
  await using database = await openNewDatabase()
  const { db } = database
  await migrate(db)
  await db.write.raw('create table later (id integer primary key)')
  expect(await assertSchema(db, { dataDir: '' })).toEqual(['table later'])
  expect(await assertSchema(db, { databaseUrl: '', backend })).toEqual([])
})

test('a comparison that fails keeps the last result', async () => {
  await using database = await openNewDatabase()
  await migrate(database.db)
  const db = database.reopen()
  let nowMs = 0
  const schema = await checkSchema(
    db,
    { database: { dataDir: '' } },
    pino({ level: 'silent' }),
    () => nowMs,
  )
  expect(await schema.isIntact()).toBe(true)
  await db.write.raw('drop index jobs_by_title')
  // The schema is compared again after 10 s.
  nowMs = 10_000
  expect(await schema.isIntact()).toBe(false)
  await db.close()
  nowMs = 20_000
  expect(await schema.isIntact()).toBe(false)
})
