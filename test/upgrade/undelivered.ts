/** The undelivered deliveries of a database, and their arrival at a receiver. */
import { Webhook } from 'standardwebhooks'
import { expect } from 'vitest'
import { accountScope } from '../../records/database/scope.ts'
import { findSealedSecrets } from '../../records/webhook-secrets.ts'
import { openSecret } from '../../webhooks/transport/secret.ts'
import { type TestApp, until } from '../helpers.ts'
import type { Receiver } from '../receiver.ts'

export interface UndeliveredRow {
  id: string
  webhook_id: string
  account_id: string
  state: string
  body: Buffer
}

export const listUndelivered = ({ db }: Pick<TestApp, 'db'>): Promise<UndeliveredRow[]> =>
  db.read('deliveries').whereNot({ state: 'delivered' }).orderBy('id')

async function secretOf({ db, config }: TestApp, delivery: UndeliveredRow): Promise<string> {
  const scope = accountScope({ dialect: db.dialect, sql: db.read }, delivery.account_id)
  const sealed = await findSealedSecrets(scope, delivery.webhook_id)
  return openSecret(config.secretKeys, delivery.webhook_id, sealed?.current ?? '')
}

/** Waits until each delivery has arrived once, with its body and the signature of its webhook. */
export async function expectArrival(
  app: TestApp,
  undelivered: UndeliveredRow[],
  receiver: Receiver,
): Promise<void> {
  await until('all are delivered', async () => (await listUndelivered(app)).length === 0, 60_000)
  expect(receiver.requests).toHaveLength(undelivered.length)
  for (const delivery of undelivered) {
    const request = receiver.requests.find(({ headers }) => headers['webhook-id'] === delivery.id)
    expect(request?.body).toEqual(delivery.body)
    const webhook = new Webhook(await secretOf(app, delivery))
    webhook.verify(String(request?.body), request?.headers as Record<string, string>)
  }
}
