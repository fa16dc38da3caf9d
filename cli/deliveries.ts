import { type Command, InvalidArgumentError, Option } from 'commander'
import { validate as isUuid } from 'uuid'
import { accountScope, type Db, type Scope, transaction, writeScope } from '../records/db.ts'
import { type Attempt, type Delivery, type DeliveryState, findAccountOfDelivery, findDelivery, listAttempts, listDeliveries, resendDelivery, retryDelivery } from '../records/deliveries.ts'
import { Refused } from '../records/refused.ts'
import { findAccountOfWebhook } from '../records/webhooks.ts'
import { examples, type Output, type Shell, table, timeOf } from './shell.ts'

interface ListOptions {
  webhook: string
  state?: DeliveryState
  limit: number
}

export function addDeliveries(program: Command, shell: Shell): void {
  const deliveries = program.command('deliveries').description('See what webhooks delivered, and try again by hand.')

  deliveries
    .command('list')
    .summary('list the deliveries of a webhook')
    .description('List the deliveries of a webhook, newest first.')
    .requiredOption('--webhook <id>', 'the webhook')
    .addOption(new Option('--state <state>', 'only those in this state').choices(['pending', 'retrying', 'delivered', 'failed']))
    .option('--limit <n>', 'at most so many (default: all)', countOf, Number.POSITIVE_INFINITY)
    .addHelpText(
      'after',
      examples('muster deliveries list --webhook ID --limit 20', 'muster deliveries list --webhook ID --state failed --json'),
    )
    .action(
      shell.action((options: ListOptions) =>
        shell.records(async ({ db }): Promise<Output> => {
          const accountId = isUuid(options.webhook) ? await findAccountOfWebhook(db.read, options.webhook) : undefined
          if (accountId === undefined) throw new Refused(`There is no webhook ${options.webhook}`)
          const found = await listAll(accountScope({ dialect: db.dialect, sql: db.read }, accountId), options)
          return { document: found.map(documentOf), text: found.length === 0 ? 'There are no such deliveries.' : tableOf(found) }
        }),
      ),
    )

  deliveries
    .command('retry')
    .summary('retry a failed delivery or resend a delivered one')
    .description('Make one more attempt at once, outside the schedule: a retry of a failed delivery, a resend of a delivered one.')
    .argument('<id>', 'the delivery')
    .addHelpText('after', examples('muster deliveries retry 0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11'))
    .action(
      shell.action((id: string) =>
        shell.records(async ({ db }): Promise<Output> => {
          const accountId = await accountOf(db, id)
          const trigger = await transaction(db, async (trx) => {
            const scope = writeScope(trx, accountId)
            const delivery = await findDelivery(scope, id)
            if (delivery?.state !== 'failed' && delivery?.state !== 'delivered')
              throw new Refused(`Delivery ${id} is ${delivery?.state}: its next attempt is at ${timeOf(delivery?.nextAttemptAt ?? null)}`)
            const attemptByHand = delivery.state === 'failed' ? retryDelivery : resendDelivery
            await attemptByHand(scope, id, new Date())
            return delivery.state === 'failed' ? 'retry' : 'resend'
          })
          return {
            document: { id, trigger },
            text: [
              trigger === 'retry'
                ? `Delivery ${id} is retried: a running server makes one attempt within a second.`
                : `Delivery ${id} is resent: a running server makes one attempt within a second, and it stays delivered whatever comes of it.`,
              `See what came of it:  muster deliveries attempts ${id}`,
            ].join('\n'),
          }
        }),
      ),
    )

  deliveries
    .command('attempts')
    .summary('list the attempts of a delivery')
    .description('List the attempts of a delivery, in the order in which they were made.')
    .argument('<id>', 'the delivery')
    .addHelpText('after', examples('muster deliveries attempts 0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11'))
    .action(
      shell.action((id: string) =>
        shell.records(async ({ db }): Promise<Output> => {
          const accountId = await accountOf(db, id)
          const attempts = await listAttempts(accountScope({ dialect: db.dialect, sql: db.read }, accountId), id)
          return {
            document: attempts.map(attemptDocumentOf),
            text: attempts.length === 0 ? 'No attempt has been made yet.' : attemptTableOf(attempts),
          }
        }),
      ),
    )
}

function countOf(given: string): number {
  if (!/^[1-9]\d{0,8}$/.test(given)) throw new InvalidArgumentError('It must be a whole number from 1.')
  return Number(given)
}

/** One statement's worth. */
const PAGE_SIZE = 1_000

async function listAll(scope: Scope, { webhook, state, limit }: ListOptions): Promise<Delivery[]> {
  const all: Delivery[] = []
  while (all.length < limit) {
    const size = Math.min(PAGE_SIZE, limit - all.length)
    const page = await listDeliveries(scope, { webhookId: webhook, state, limit: size, beforeId: all.at(-1)?.id })
    all.push(...page)
    if (page.length < size) break
  }
  return all
}

/** The account of a delivery. Throws `Refused` when there is no such delivery. */
async function accountOf(db: Db, id: string): Promise<string> {
  const accountId = isUuid(id) ? await findAccountOfDelivery(db.read, id) : undefined
  if (accountId === undefined) throw new Refused(`There is no delivery ${id}`)
  return accountId
}

function documentOf(delivery: Delivery) {
  return {
    id: delivery.id,
    event_type: delivery.eventType,
    state: delivery.state,
    attempts: delivery.attempts,
    next_attempt_at: timeOf(delivery.nextAttemptAt),
  }
}

function tableOf(deliveries: Delivery[]): string {
  return table(
    ['ID', 'EVENT', 'STATE', 'ATTEMPTS', 'NEXT ATTEMPT'],
    deliveries.map(({ id, eventType, state, attempts, nextAttemptAt }) => [
      id,
      eventType,
      state,
      String(attempts),
      timeOf(nextAttemptAt) ?? 'none',
    ]),
  )
}

function attemptDocumentOf(attempt: Attempt) {
  return {
    number: attempt.number,
    trigger: attempt.trigger,
    started_at: timeOf(attempt.startedAt),
    duration_ms: attempt.durationMs,
    outcome: attempt.outcome,
    status: attempt.status,
    response_headers: attempt.responseHeaders,
    response_body: attempt.responseBody,
    error: attempt.error,
    address: attempt.address,
    phases: attempt.phases,
  }
}

function attemptTableOf(attempts: Attempt[]): string {
  return table(
    ['NO', 'TRIGGER', 'STARTED', 'TOOK', 'OUTCOME', 'STATUS', 'ERROR'],
    attempts.map((attempt) => [
      String(attempt.number),
      attempt.trigger,
      timeOf(attempt.startedAt),
      `${attempt.durationMs} ms`,
      attempt.outcome,
      attempt.status === null ? '' : String(attempt.status),
      attempt.error ?? '',
    ]),
  )
}
