/** The comparison of a database with the schema that this version needs. */
import { expect, test } from 'vitest'
import { migrate } from '../../records/database/migrate.ts'
import { assertSchema } from '../../records/database/schema-difference.ts'
import { openNewDatabase } from '../helpers.ts'

test.each(['cockroachdb', 'yugabytedb'])('a database on %s is not compared', async (backend) => {
  await using database = await openNewDatabase()
  const { db } = database
  await migrate(db)
  await db.write.raw('create table later (id integer primary key)')
  expect(await assertSchema(db, { dataDir: '' })).toEqual(['table later'])
  expect(await assertSchema(db, { databaseUrl: '', backend })).toEqual([])
})
