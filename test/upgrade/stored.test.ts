/** The upgrade from the stored database of every release. */
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { readSchema } from '../../records/database/schema.ts'
import { accountScope } from '../../records/database/scope.ts'
import { findSealedSecrets } from '../../records/webhooks.ts'
import { openSecret } from '../../webhooks/transport/secret.ts'
import { newDatabase, type TestApp, until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { populate, startOn } from './populate.ts'
import { readRows } from './rows.ts'
import { listStoredReleases, restore } from './stored-databases.ts'

interface UndeliveredRow {
  id: string
  webhook_id: string
  account_id: string
  state: string
  body: Buffer
}

/** Long, because the test fills a database and starts four nodes. */
const TIMEOUT_MS = 180_000

const listUndelivered = ({ db }: TestApp): Promise<UndeliveredRow[]> =>
  db.read('deliveries').whereNot({ state: 'delivered' }).orderBy('id')

async function secretOf({ db, config }: TestApp, delivery: UndeliveredRow): Promise<string> {
  const scope = accountScope({ dialect: db.dialect, sql: db.read }, delivery.account_id)
  const sealed = await findSealedSecrets(scope, delivery.webhook_id)
  return openSecret(config.secretKeys, delivery.webhook_id, sealed?.current ?? '')
}

test.each(listStoredReleases())(
  '%s: the schema and the rows are those of a new database, and every delivery arrives',
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
      expect(await readRows(upgraded.db, schema)).toEqual(await readRows(expected.db, schema))
      undelivered = await listUndelivered(upgraded)
      expect(new Set(undelivered.map(({ state }) => state))).toEqual(
        new Set(['pending', 'retrying']),
      )
      // Before a worker runs: the stored URL leads nowhere.
      await upgraded.db.write('webhooks').update({ url: receiver.url })
    }

    await using app = await startOn(stored, 'all')
    await until('all are delivered', async () => (await listUndelivered(app)).length === 0, 60_000)
    expect(receiver.requests).toHaveLength(undelivered.length)
    for (const delivery of undelivered) {
      const request = receiver.requests.find(({ headers }) => headers['webhook-id'] === delivery.id)
      expect(request?.body).toEqual(delivery.body)
      const webhook = new Webhook(await secretOf(app, delivery))
      webhook.verify(String(request?.body), request?.headers as Record<string, string>)
    }
  },
  TIMEOUT_MS,
)
