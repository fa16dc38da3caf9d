/** The `deliveries` commands that read: list, undelivered, attempts. */
import { Option } from 'commander'
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
import { type Columns, databaseCommand, listOutput } from './commands.ts'
import {
  ACCOUNT_MEANING,
  lookUpAccount,
  lookUpDeliveryAccount,
  lookUpWebhookAccount,
} from './lookup.ts'
import { formatTime, parseInteger } from './shell.ts'

const MAX_LIMIT = 1_000_000_000
const PAGE_ROWS = 1_000

interface ListOptions {
  webhook: string
  state?: DeliveryState
  limit: number
}

export const list = databaseCommand({
  name: 'list',
  summary: 'list the deliveries of a webhook',
  description: 'List the deliveries of a webhook, newest first.',
  declare: (command) =>
    command
      .requiredOption('--webhook <id>', 'the webhook')
      .addOption(
        new Option('--state <state>', 'only deliveries in this state').choices(deliveryStates),
      )
      .addOption(limitOption()),
  examples: [
    'muster deliveries list --webhook ID --limit 20',
    'muster deliveries list --webhook ID --state failed --json',
  ],
  async run({ db }, { webhook: webhookId, state, limit }: ListOptions) {
    const scope = readScope(db, await lookUpWebhookAccount(db, webhookId))
    const found = await readAllPages(limit, (page) =>
      listDeliveries(scope, { webhookId, state, ...page }),
    )
    return listOutput(found, {
      toDocument: deliveryDocument,
      columns: DELIVERY_COLUMNS,
      none: 'No deliveries match.',
    })
  },
})

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

export const undelivered = databaseCommand({
  name: 'undelivered',
  summary: 'list the undelivered deliveries of an account',
  description:
    'List the deliveries of an account that are pending, retrying or failed, newest first.',
  declare: (command) =>
    command
      .requiredOption('--account <account>', ACCOUNT_MEANING)
      .option('--webhook <id>', 'only deliveries of this webhook')
      .addOption(limitOption()),
  examples: ['muster deliveries undelivered --account ID --limit 20'],
  async run({ db }, { account, webhook, limit }: UndeliveredOptions) {
    const { id: accountId } = await lookUpAccount(db, account)
    if (webhook !== undefined) await assertWebhookOfAccount(db, webhook, accountId)
    const scope = readScope(db, accountId)
    const found = await readAllPages(limit, (page) =>
      listUndelivered(scope, { webhookId: webhook, ...page }),
    )
    return listOutput(found, {
      toDocument: undeliveredDocument,
      columns: UNDELIVERED_COLUMNS,
      none: 'Everything is delivered.',
    })
  },
})

async function assertWebhookOfAccount(db: Db, webhookId: string, accountId: string): Promise<void> {
  if (!isUuid(webhookId) || (await findAccountOf(db.read, 'webhooks', webhookId)) !== accountId)
    throw new Refused(`There is no webhook ${webhookId} in account ${accountId}`)
}

export const attempts = databaseCommand({
  name: 'attempts',
  summary: 'list the attempts of a delivery',
  description: 'List the attempts of a delivery, oldest first, with their responses.',
  declare: (command) => command.argument('<id>', 'the delivery'),
  examples: ['muster deliveries attempts ID'],
  async run({ db }, id: string) {
    const scope = readScope(db, await lookUpDeliveryAccount(db, id))
    return listOutput(await listAttempts(scope, id), {
      toDocument: attemptDocument,
      columns: ATTEMPT_COLUMNS,
      none: 'No attempts yet.',
    })
  },
})

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

const DELIVERY_COLUMNS: Columns<Delivery> = {
  ID: ({ id }) => id,
  EVENT: ({ eventType }) => eventType,
  STATE: ({ state }) => state,
  ATTEMPTS: ({ attempts }) => attempts,
  'NEXT ATTEMPT': ({ nextAttemptAt }) => formatTime(nextAttemptAt) ?? 'none',
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

const UNDELIVERED_COLUMNS: Columns<Undelivered> = {
  ID: ({ id }) => id,
  WEBHOOK: ({ webhookId }) => webhookId,
  // ID stays the first column.
  ...DELIVERY_COLUMNS,
  'LAST ERROR': ({ lastError, failureReason }) =>
    [lastError, failureReason && FAILURE_REASONS[failureReason]].filter(Boolean).join(' '),
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

const ATTEMPT_COLUMNS: Columns<RecordedAttempt> = {
  NO: ({ number }) => number,
  TRIGGER: ({ trigger }) => trigger,
  STARTED: ({ startedAt }) => formatTime(startedAt),
  DURATION: ({ durationMs }) => `${durationMs} ms`,
  OUTCOME: ({ outcome }) => outcome,
  STATUS: ({ status }) => status,
  ERROR: ({ error }) => error,
}
