/** A query uses a partial index only when it repeats the predicate of the index. */
import { expect, inject, test } from 'vitest'
import { INDEX_PREDICATES } from '../../records/scheduled-attempts.ts'
import { newBench } from './engines.ts'

const normalise = (text: string): string =>
  text
    .replace(/::text|\[\]/g, '')
    .replace(/= any \(array\((.*?)\)\)|= any \(array(.*?)\)/gi, 'in $1$2')
    .replace(/[()[\]\s]/g, '')
    .toLowerCase()

test.each(Object.entries(INDEX_PREDICATES))('%s: where %s', async (name, predicate) => {
  await using bench = await newBench()
  const { sql } =
    inject('database') === 'postgres'
      ? (
          await bench.db.read.raw('select indexdef as sql from pg_indexes where indexname = ?', [
            name,
          ])
        ).rows[0]
      : (await bench.db.read.raw('select sql from sqlite_master where name = ?', [name]))[0]
  const definition = sql.slice(sql.toLowerCase().indexOf(' where ') + ' where '.length)
  expect(normalise(definition)).toBe(normalise(predicate))
})
