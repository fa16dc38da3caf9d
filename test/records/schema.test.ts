/** The committed schema files, the checksums of the migrations, and the index predicates that
 *  queries repeat. */
import { beforeAll, expect, inject, test } from 'vitest'
import { migrate } from '../../records/database/migrate.ts'
import {
  readCommittedChecksums,
  readFileChecksums,
} from '../../records/database/migration-files.ts'
import { type DatabaseSchema, readSchema } from '../../records/database/schema.ts'
import * as predicates from '../../records/index-predicates.ts'
import { openNewDatabase } from '../helpers.ts'

const dialect = inject('database')
const HOW_TO_REFRESH =
  `records/schema.${dialect}.json or records/migration-checksums.json does not match the migrations. ` +
  'Run "npm run update-schema" and commit both.'

let schema: DatabaseSchema

beforeAll(async () => {
  await using database = await openNewDatabase()
  await migrate(database.db)
  schema = await readSchema(database.db)
})

test('the migrations result in the committed schema', async () => {
  const text = `${JSON.stringify(schema, null, 2)}\n`
  await expect(text, HOW_TO_REFRESH).toMatchFileSnapshot(`../../records/schema.${dialect}.json`)
})

test('each migration has a checksum, and none has changed since it landed', async () => {
  const files = await readFileChecksums()
  const committed = await readCommittedChecksums()
  expect(files, 'Restore the files that have changed.').toMatchObject(committed)
  // An update adds the new migrations, and keeps every other checksum.
  const text = `${JSON.stringify({ ...files, ...committed }, null, 2)}\n`
  await expect(text, HOW_TO_REFRESH).toMatchFileSnapshot('../../records/migration-checksums.json')
})

test.runIf(dialect === 'sqlite').each([
  ['deliveries_undelivered', predicates.UNDELIVERED],
  ['deliveries_undelivered_by_webhook', predicates.UNDELIVERED],
  ['deliveries_in_order', predicates.UNFINISHED_IN_ORDER],
  ['deliveries_unqueued', predicates.UNQUEUED],
  ['deliveries_waiting', predicates.UNQUEUED_BY_WEBHOOK],
  ['bulk_jobs_running', predicates.RUNNING_BULK_JOBS],
  ['exports_unfinished', predicates.UNFINISHED_FILE_JOBS],
  ['imports_unfinished', predicates.UNFINISHED_FILE_JOBS],
])('the constant for queries repeats the predicate of %s', (index, predicate) => {
  const table = Object.values(schema).find(({ indexes }) => index in indexes)
  expect(table?.indexes[index]?.split(' where ')[1]).toBe(predicate)
})
