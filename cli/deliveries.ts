import { type Command, InvalidArgumentError, Option } from 'commander'
import { validate as isUuid } from 'uuid'
import { Refused } from '../errors.ts'
import { eventTypes } from '../generated/events.ts'
import { hasAccount } from '../records/accounts.ts'
import { countSelected } from '../records/bulk-jobs.ts'
import type { Db } from '../records/database/open.ts'
import { accountScope, type WriteScope, writeScope } from '../records/database/scope.ts'
import { transaction } from '../records/database/transaction.ts'
import {
  type Attempt,
  attemptNow,
  cancelDelivery,
  type Delivery,
  type DeliveryState,
  type FailureReason,
  findAccountOfDelivery,
  findDelivery,
  listAttempts,
  listDeliveries,
  listUndelivered,
  resendDelivery,
  retryDelivery,
  type Undelivered,
} from '../records/deliveries.ts'
import { findAccountOfWebhook } from '../records/webhooks.ts'
import { DEFAULT_RATE, failedIn, MAX_RATE, startBulkJob } from '../webhooks/bulk.ts'
import { assertSpan, momentOf, rateOf, sayPreview, sayStarted } from './bulk.ts'
import { examples, listOf, type Output, type Shell, table, timeOf, WrongUsage } from './shell.ts'

interface ListOptions {
  webhook: string
  state?: DeliveryState
  limit: number
}

interface UndeliveredOptions {
  account: string
  webhook?: string
  limit: number
}

interface RetryFailedOptions {
  webhook?: string
  account?: string
  type?: string[]
  since: Date
  until?: Date
  rate: number
  preview?: boolean
}

export function addDeliveries(program: Command, shell: Shell): void {
  const deliveries = program
    .command('deliveries')
    .description('See what webhooks delivered, and try again by hand.')

  deliveries
    .command('list')
    .summary('list the deliveries of a webhook')
    .description('List the deliveries of a webhook, newest first.')
    .requiredOption('--webhook <id>', 'the webhook')
    .addOption(
      new Option('--state <state>', 'only those in this state').choices([
        'pending',
        'retrying',
        'delivered',
        'failed',
      ]),
    )
    .option('--limit <n>', 'at most so many (default: all)', countOf, Number.POSITIVE_INFINITY)
    .addHelpText(
      'after',
      examples(
        'muster deliveries list --webhook ID --limit 20',
        'muster deliveries list --webhook ID --state failed --json',
      ),
    )
    .action(
      shell.action((options: ListOptions) =>
        shell.records(async ({ db }): Promise<Output> => {
          const accountId = isUuid(options.webhook)
            ? await findAccountOfWebhook(db.read, options.webhook)
            : undefined
          if (accountId === undefined) throw new Refused(`There is no webhook ${options.webhook}`)
          const { webhook: webhookId, state, limit } = options
          const scope = accountScope({ dialect: db.dialect, sql: db.read }, accountId)
          const found = await allPages(limit, (page) =>
            listDeliveries(scope, { webhookId, state, ...page }),
          )
          return {
            document: found.map(documentOf),
            text: found.length === 0 ? 'There are no such deliveries.' : tableOf(found),
          }
        }),
      ),
    )

  deliveries
    .command('undelivered')
    .summary('list what has not arrived, over all webhooks')
    .description(
      'List the events of an account that have not arrived, over all webhooks: what is pending, retrying or failed, newest first.',
    )
    .requiredOption('--account <id>', 'the account')
    .option('--webhook <id>', 'only those of this webhook')
    .option('--limit <n>', 'at most so many (default: all)', countOf, Number.POSITIVE_INFINITY)
    .addHelpText('after', examples('muster deliveries undelivered --account ID --limit 20'))
    .action(
      shell.action(({ account, webhook, limit }: UndeliveredOptions) =>
        shell.records(async ({ db }): Promise<Output> => {
          if (!isUuid(account) || !(await hasAccount(db.read, account)))
            throw new Refused(`There is no account ${account}`)
          if (
            webhook !== undefined &&
            (!isUuid(webhook) || (await findAccountOfWebhook(db.read, webhook)) !== account)
          )
            throw new Refused(`There is no webhook ${webhook} of account ${account}`)
          const scope = accountScope({ dialect: db.dialect, sql: db.read }, account)
          const found = await allPages(limit, (page) =>
            listUndelivered(scope, { webhookId: webhook, ...page }),
          )
          const text = found.length === 0 ? 'Everything has arrived.' : undeliveredTableOf(found)
          return { document: found.map(undeliveredDocumentOf), text }
        }),
      ),
    )

  deliveries
    .command('retry')
    .summary('attempt a delivery at once')
    .description(
      'Make an attempt at once: of a delivery on the schedule the next one, of a failed one a retry and of a delivered one a resend, which are outside the schedule. Twice before it is made is once.',
    )
    .argument('<id>', 'the delivery')
    .addHelpText('after', examples('muster deliveries retry 0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11'))
    .action(
      shell.action((id: string) =>
        shell.records(async ({ db }): Promise<Output> => {
          const accountId = await accountOf(db, id)
          const trigger = await transaction(db, (trx) =>
            retryNow(writeScope(trx, accountId), id, new Date()),
          )
          return {
            document: { id, trigger },
            text: [
              sayRetried(id, trigger),
              `See what came of it:  muster deliveries attempts ${id}`,
            ].join('\n'),
          }
        }),
      ),
    )

  deliveries
    .command('retry-failed')
    .summary('retry all that failed in some time')
    .description(
      'Retry every delivery of a webhook, or of an account, that failed in some time: one attempt each. It is done in the background, and goes on after a restart.',
    )
    .addOption(new Option('--webhook <id>', 'those of this webhook').conflicts('account'))
    .option('--account <id>', 'those of all enabled webhooks of this account')
    .option(
      '--type <list>',
      'only of these event types, such as participant.created,task.completed',
      listOf(...Object.keys(eventTypes)),
    )
    .requiredOption('--since <time>', 'what failed from then on', momentOf)
    .option('--until <time>', 'what failed before then (default: now)', momentOf)
    .option('--rate <n>', `deliveries a second, at most ${MAX_RATE}`, rateOf, DEFAULT_RATE)
    .option('--preview', 'only say how many it would be')
    .addHelpText(
      'after',
      examples(
        'muster deliveries retry-failed --webhook ID --since 2026-11-21T09:00:00Z --preview',
        'muster deliveries retry-failed --account ID --type participant.created --since 2026-11-21 --until 2026-11-22 --rate 100',
      ),
    )
    .action(shell.action((options: RetryFailedOptions) => retryFailed(shell, options)))

  deliveries
    .command('cancel')
    .summary('take a delivery off the schedule')
    .description(
      'Take a delivery off the schedule: it ends as failed, unless an attempt that is under way succeeds. It can be retried.',
    )
    .argument('<id>', 'the delivery')
    .addHelpText('after', examples('muster deliveries cancel 0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11'))
    .action(
      shell.action((id: string) =>
        shell.records(async ({ db }): Promise<Output> => {
          const accountId = await accountOf(db, id)
          await transaction(db, (trx) => cancelDelivery(writeScope(trx, accountId), id, new Date()))
          return {
            document: { id, state: 'failed', failure_reason: 'cancelled' },
            text: `Delivery ${id} is cancelled: it has failed.`,
          }
        }),
      ),
    )

  deliveries
    .command('attempts')
    .summary('list the attempts of a delivery')
    .description('List the attempts of a delivery, in the order in which they were made.')
    .argument('<id>', 'the delivery')
    .addHelpText(
      'after',
      examples('muster deliveries attempts 0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11'),
    )
    .action(
      shell.action((id: string) =>
        shell.records(async ({ db }): Promise<Output> => {
          const accountId = await accountOf(db, id)
          const attempts = await listAttempts(
            accountScope({ dialect: db.dialect, sql: db.read }, accountId),
            id,
          )
          return {
            document: attempts.map(attemptDocumentOf),
            text: attempts.length === 0 ? 'No attempt is on record.' : attemptTableOf(attempts),
          }
        }),
      ),
    )
}

function countOf(given: string): number {
  if (!/^[1-9]\d{0,8}$/.test(given))
    throw new InvalidArgumentError('It must be a whole number from 1.')
  return Number(given)
}

/** One statement's worth. */
const PAGE_SIZE = 1_000

async function allPages<T extends { id: string }>(
  limit: number,
  listPage: (page: { limit: number; beforeId?: string }) => Promise<T[]>,
): Promise<T[]> {
  const all: T[] = []
  while (all.length < limit) {
    const size = Math.min(PAGE_SIZE, limit - all.length)
    const page = await listPage({ limit: size, beforeId: all.at(-1)?.id })
    all.push(...page)
    if (page.length < size) break
  }
  return all
}

type Retried = 'schedule' | 'retry' | 'resend'

/** What kind of attempt is made. Throws `DeliveryRefused`. */
async function retryNow(scope: WriteScope, id: string, now: Date): Promise<Retried> {
  const delivery = await findDelivery(scope, id)
  const [trigger, plan] = (
    {
      pending: ['schedule', attemptNow],
      retrying: ['schedule', attemptNow],
      failed: ['retry', retryDelivery],
      delivered: ['resend', resendDelivery],
    } as const
  )[delivery?.state ?? 'failed']
  const planned = await plan(scope, id, now)
  if (!planned) throw new Refused(`There is no delivery ${id}`)
  if (trigger === 'schedule' && planned.nextAttemptAt === null)
    throw new Refused(
      `Delivery ${id} waits for an earlier event of its resource, which has not arrived yet.`,
    )
  return trigger
}

function sayRetried(id: string, trigger: Retried): string {
  if (trigger === 'schedule')
    return `Delivery ${id} is attempted now: a running server makes its next attempt within a second.`
  if (trigger === 'retry')
    return `Delivery ${id} is retried: a running server makes one attempt within a second.`
  return `Delivery ${id} is resent: a running server makes one attempt within a second, and it stays delivered whatever comes of it.`
}

function retryFailed(
  shell: Shell,
  { webhook, account, type: types, since, until, rate, preview }: RetryFailedOptions,
): Promise<Output> {
  if (webhook === undefined && account === undefined)
    throw new WrongUsage("one of the options '--webhook <id>' and '--account <id>' is needed")
  assertSpan({ since, until })
  return shell.records(async ({ db }) => {
    const now = new Date()
    const accountId = await accountToRetry(db, webhook, account ?? '')
    const selection = failedIn(webhook ?? null, types ?? null, { since, until }, now)
    if (!preview)
      return sayStarted(
        await startBulkJob(db, accountId, selection, { rate, createdBy: null }, now),
      )
    return sayPreview(
      selection,
      await countSelected(
        accountScope({ dialect: db.dialect, sql: db.read }, accountId),
        selection,
      ),
    )
  })
}

async function accountToRetry(
  db: Db,
  webhook: string | undefined,
  account: string,
): Promise<string> {
  if (webhook === undefined) {
    if (!isUuid(account) || !(await hasAccount(db.read, account)))
      throw new Refused(`There is no account ${account}`)
    return account
  }
  const accountId = isUuid(webhook) ? await findAccountOfWebhook(db.read, webhook) : undefined
  if (accountId === undefined) throw new Refused(`There is no webhook ${webhook}`)
  return accountId
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

const REASONS: Record<FailureReason, string> = {
  attempts_exhausted: 'All attempts failed.',
  attempt_failed: 'The attempt by hand failed.',
  webhook_disabled: 'The webhook was disabled.',
  webhook_deleted: 'The webhook was deleted.',
  cancelled: 'It was cancelled.',
}

function undeliveredDocumentOf(delivery: Undelivered) {
  return {
    ...documentOf(delivery),
    webhook_id: delivery.webhookId,
    failure_reason: delivery.failureReason,
    last_error: delivery.lastError,
    created_at: timeOf(delivery.createdAt),
  }
}

function undeliveredTableOf(deliveries: Undelivered[]): string {
  return table(
    ['ID', 'WEBHOOK', 'EVENT', 'STATE', 'ATTEMPTS', 'NEXT ATTEMPT', 'LAST ERROR'],
    deliveries.map(
      ({ id, webhookId, eventType, state, failureReason, attempts, nextAttemptAt, lastError }) => [
        id,
        webhookId,
        eventType,
        state,
        String(attempts),
        timeOf(nextAttemptAt) ?? 'none',
        [lastError, failureReason && REASONS[failureReason]].filter(Boolean).join(' '),
      ],
    ),
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
