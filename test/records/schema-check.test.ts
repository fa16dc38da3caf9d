/** The comparison of a database with the schema that this version needs. */
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { migrate } from '../../records/database/migrate.ts'
import { checkSchema } from '../../server/schema-check.ts'
import { openNewDatabase } from '../helpers.ts'

test('a comparison that fails keeps the last result', async () => {
  await using database = await openNewDatabase()
  await migrate(database.db)
  const db = database.reopen()
  let nowMs = 0
  const schema = await checkSchema(db, pino({ level: 'silent' }), () => nowMs)
  expect(await schema.isIntact()).toBe(true)
  await db.write.raw('drop index jobs_by_title')
  // The schema is compared again after 10 s.
  nowMs = 10_000
  expect(await schema.isIntact()).toBe(false)
  await db.close()
  nowMs = 20_000
  expect(await schema.isIntact()).toBe(false)
})
