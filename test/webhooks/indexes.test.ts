/** A query uses a partial index only when it repeats the predicate of the index. */
import { expect, inject, test } from 'vitest'
import { UNQUEUED, UNQUEUED_BY_WEBHOOK } from '../../records/index-predicates.ts'
import { newInstallation } from './harness.ts'

const normalise = (text: string): string => text.replace(/[()\s]/g, '').toLowerCase()

test.each([
  ['deliveries_unqueued', UNQUEUED],
  ['deliveries_waiting', UNQUEUED_BY_WEBHOOK],
])('the partial index %s has the predicate of its queries: %s', async (name, predicate) => {
  await using installation = await newInstallation()
  const { sql } =
    inject('database') === 'postgres'
      ? (
          await installation.db.read.raw(
            'select indexdef as sql from pg_indexes where indexname = ?',
            [name],
          )
        ).rows[0]
      : (await installation.db.read.raw('select sql from sqlite_master where name = ?', [name]))[0]
  const definition = sql.slice(sql.toLowerCase().indexOf(' where ') + ' where '.length)
  expect(normalise(definition)).toBe(normalise(predicate))
})
