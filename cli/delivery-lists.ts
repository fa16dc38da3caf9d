/** The `deliveries` commands that read: list, undelivered, attempts. */
import { type Command, Option } from 'commander'
import { validate as isUuid } from 'uuid'
import { Refused } from '../errors.ts'
import { findAccountOf } from '../records/accounts.ts'
import { listAttempts, type RecordedAttempt } from '../records/attempts.ts'
import type { Db } from '../records/database/open.ts'
import { readScope } from '../records/database/scope.ts'
import {
  type Delivery,
  type DeliveryState,
  deliveryStates,
  type FailureReason,
  listDeliveries,
  listUndelivered,
  type Undelivered,
} from '../records/deliveries.ts'
import {
  ACCOUNT_MEANING,
  lookUpAccount,
  lookUpDeliveryAccount,
  lookUpWebhookAccount,
} from './lookup.ts'
import { examples, formatTable, formatTime, parseInteger, type Shell } from './shell.ts'

const MAX_LIMIT = 1_000_000_000
const PAGE_ROWS = 1_000

interface ListOptions {
  webhook: string
  state?: DeliveryState
  limit: number
}

export function addList(deliveries: Command, shell: Shell): void {
  deliveries
    .command('list')
    .summary('list the deliveries of a webhook')
    .description('List the deliveries of a webhook, newest first.')
    .requiredOption('--webhook <id>', 'the webhook')
    .addOption(
      new Option('--state <state>', 'only deliveries in this state').choices(deliveryStates),
    )
    .addOption(limitOption())
    .addHelpText(
      'after',
      examples(
        'muster deliveries list --webhook ID --limit 20',
        'muster deliveries list --webhook ID --state failed --json',
      ),
    )
    .action(
      shell.databaseAction(async ({ db }, { webhook: webhookId, state, limit }: ListOptions) => {
        const scope = readScope(db, await lookUpWebhookAccount(db, webhookId))
        const found = await readAllPages(limit, (page) =>
          listDeliveries(scope, { webhookId, state, ...page }),
        )
        return {
          document: found.map(deliveryDocument),
          text: found.length === 0 ? 'No deliveries match.' : deliveryTable(found),
        }
      }),
    )
}

interface UndeliveredOptions {
  account: string
  webhook?: string
  limit: number
}

function limitOption(): Option {
  return new Option('--limit <n>', 'the most rows to print')
    .argParser(parseInteger(1, MAX_LIMIT))
    .default(Number.POSITIVE_INFINITY, 'all')
}

export function addUndelivered(deliveries: Command, shell: Shell): void {
  deliveries
    .command('undelivered')
    .summary('list the undelivered deliveries of an account')
    .description(
      'List the deliveries of an account that are pending, retrying or failed, newest first.',
    )
    .requiredOption('--account <account>', ACCOUNT_MEANING)
    .option('--webhook <id>', 'only deliveries of this webhook')
    .addOption(limitOption())
    .addHelpText('after', examples('muster deliveries undelivered --account ID --limit 20'))
    .action(
      shell.databaseAction(async ({ db }, { account, webhook, limit }: UndeliveredOptions) => {
        const { id: accountId } = await lookUpAccount(db, account)
        if (webhook !== undefined) await assertWebhookOfAccount(db, webhook, accountId)
        const scope = readScope(db, accountId)
        const found = await readAllPages(limit, (page) =>
          listUndelivered(scope, { webhookId: webhook, ...page }),
        )
        return {
          document: found.map(undeliveredDocument),
          text: found.length === 0 ? 'Everything is delivered.' : undeliveredTable(found),
        }
      }),
    )
}

async function assertWebhookOfAccount(db: Db, webhookId: string, accountId: string): Promise<void> {
  if (!isUuid(webhookId) || (await findAccountOf(db.read, 'webhooks', webhookId)) !== accountId)
    throw new Refused(`There is no webhook ${webhookId} in account ${accountId}`)
}

export function addAttempts(deliveries: Command, shell: Shell): void {
  deliveries
    .command('attempts')
    .summary('list the attempts of a delivery')
    .description('List the attempts of a delivery, oldest first, with their responses.')
    .argument('<id>', 'the delivery')
    .addHelpText('after', examples('muster deliveries attempts ID'))
    .action(
      shell.databaseAction(async ({ db }, id: string) => {
        const scope = readScope(db, await lookUpDeliveryAccount(db, id))
        const attempts = await listAttempts(scope, id)
        return {
          document: attempts.map(attemptDocument),
          text: attempts.length === 0 ? 'No attempts yet.' : attemptTable(attempts),
        }
      }),
    )
}

async function readAllPages<T extends { id: string }>(
  limit: number,
  readPage: (page: { limit: number; beforeId?: string }) => Promise<T[]>,
): Promise<T[]> {
  const all: T[] = []
  while (all.length < limit) {
    const size = Math.min(PAGE_ROWS, limit - all.length)
    const page = await readPage({ limit: size, beforeId: all.at(-1)?.id })
    all.push(...page)
    if (page.length < size) break
  }
  return all
}

function deliveryDocument(delivery: Delivery) {
  return {
    id: delivery.id,
    event_id: delivery.eventId,
    event_type: delivery.eventType,
    state: delivery.state,
    attempts: delivery.attempts,
    next_attempt_at: formatTime(delivery.nextAttemptAt),
  }
}

function deliveryTable(deliveries: Delivery[]): string {
  return formatTable(
    ['ID', 'EVENT', 'STATE', 'ATTEMPTS', 'NEXT ATTEMPT'],
    deliveries.map(({ id, eventType, state, attempts, nextAttemptAt }) => [
      id,
      eventType,
      state,
      String(attempts),
      formatTime(nextAttemptAt) ?? 'none',
    ]),
  )
}

const FAILURE_REASONS: Record<FailureReason, string> = {
  attempts_exhausted: 'All attempts failed.',
  attempt_failed: 'The manual attempt failed.',
  webhook_disabled: 'The webhook was disabled.',
  webhook_deleted: 'The webhook was deleted.',
  cancelled: 'The delivery was cancelled.',
}

function undeliveredDocument(delivery: Undelivered) {
  return {
    ...deliveryDocument(delivery),
    webhook_id: delivery.webhookId,
    failure_reason: delivery.failureReason,
    last_error: delivery.lastError,
    created_at: formatTime(delivery.createdAt),
  }
}

function undeliveredTable(deliveries: Undelivered[]): string {
  return formatTable(
    ['ID', 'WEBHOOK', 'EVENT', 'STATE', 'ATTEMPTS', 'NEXT ATTEMPT', 'LAST ERROR'],
    deliveries.map((delivery) => [
      delivery.id,
      delivery.webhookId,
      delivery.eventType,
      delivery.state,
      String(delivery.attempts),
      formatTime(delivery.nextAttemptAt) ?? 'none',
      [delivery.lastError, delivery.failureReason && FAILURE_REASONS[delivery.failureReason]]
        .filter(Boolean)
        .join(' '),
    ]),
  )
}

function attemptDocument(attempt: RecordedAttempt) {
  return {
    number: attempt.number,
    trigger: attempt.trigger,
    started_at: formatTime(attempt.startedAt),
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

function attemptTable(attempts: RecordedAttempt[]): string {
  return formatTable(
    ['NO', 'TRIGGER', 'STARTED', 'DURATION', 'OUTCOME', 'STATUS', 'ERROR'],
    attempts.map((attempt) => [
      String(attempt.number),
      attempt.trigger,
      formatTime(attempt.startedAt),
      `${attempt.durationMs} ms`,
      attempt.outcome,
      attempt.status === null ? '' : String(attempt.status),
      attempt.error ?? '',
    ]),
  )
}
