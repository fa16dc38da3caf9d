/** The upgrade from the stored database of every release. */
import { expect, test } from 'vitest'
import type { Db } from '../../records/database/open.ts'
import { readSchema } from '../../records/database/schema.ts'
import { newDatabase } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { readBothCounts } from '../records/record-counts.ts'
import { rowsOf } from './differences.ts'
import { populate, startOn } from './populate.ts'
import { readRows } from './rows.ts'
import { listStoredReleases, restore } from './stored-databases.ts'
import { expectArrival, listUndelivered, type UndeliveredRow } from './undelivered.ts'

/** Long, because the test fills a database and starts four nodes. */
const TIMEOUT_MS = 180_000

/** SQLite: throws unless the indexes of searches have the texts of all rows, also of those that were
 *  stored before the indexes existed. */
async function assertSearchable({ dialect, write }: Db): Promise<void> {
  if (dialect === 'postgres') return
  for (const table of ['participants', 'jobs']) {
    expect((await write(table)).length).toBeGreaterThan(0)
    const index = `${table}_search`
    await write.raw(`insert into ${index} (${index}, rank) values ('integrity-check', 1)`)
  }
}

test.each(listStoredReleases())(
  '%s: after the upgrade, schema and rows equal those of a new database, and every delivery arrives',
  async (release) => {
    await using fresh = await newDatabase()
    await populate(fresh)
    await using stored = await restore(release)
    await using receiver = await startReceiver()
    let undelivered: UndeliveredRow[]
    {
      await using expected = await startOn(fresh, 'api')
      await using upgraded = await startOn(stored, 'api')
      const schema = await readSchema(expected.db)
      expect(await readSchema(upgraded.db)).toEqual(schema)
      const rows = rowsOf(release, await readRows(expected.db, schema))
      expect(await readRows(upgraded.db, schema)).toEqual(rows)
      await assertSearchable(upgraded.db)
      const counts = await readBothCounts(upgraded.db)
      expect(counts.stored).toEqual(counts.counted)
      undelivered = await listUndelivered(upgraded)
      expect(new Set(undelivered.map(({ state }) => state))).toEqual(
        new Set(['pending', 'retrying']),
      )
      // No worker runs yet, so no attempt has gone to the stored URL, at which nothing listens.
      await upgraded.db.write('webhooks').update({ url: receiver.url })
    }

    await using app = await startOn(stored, 'all')
    await expectArrival(app, undelivered, receiver)
  },
  TIMEOUT_MS,
)
