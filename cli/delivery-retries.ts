/** The `deliveries` commands that change deliveries: retry, retry-failed, retry-waiting, cancel. */
import { type Command, Option } from 'commander'
import { Refused } from '../errors.ts'
import { eventTypes } from '../generated/events.ts'
import type { BulkSelection } from '../records/bulk-jobs.ts'
import { accountTransaction, type WriteScope } from '../records/database/scope.ts'
import { findDelivery } from '../records/deliveries.ts'
import {
  attemptNow,
  cancelDelivery,
  resendDelivery,
  retryDelivery,
} from '../records/delivery-commands.ts'
import { selectFailedDeliveries, selectWaitingDeliveries } from '../webhooks/bulk.ts'
import {
  addBulkOptions,
  addUntilOption,
  assertPeriod,
  type BulkOptions,
  parseTime,
  startOrPreview,
} from './bulk.ts'
import { databaseCommand } from './commands.ts'
import type { CommandDatabase } from './installation.ts'
import { lookUpAccount, lookUpDeliveryAccount, lookUpWebhookAccount } from './lookup.ts'
import { type Output, parseList, UsageError } from './shell.ts'

export const retry = databaseCommand({
  name: 'retry',
  summary: 'attempt a delivery now',
  description:
    'Attempt a delivery now: make the next attempt of a scheduled one, retry a failed one, ' +
    'resend a delivered one. Retries and resends do not count as scheduled attempts. ' +
    'Running this again before the attempt starts changes nothing.',
  declare: (command) => command.argument('<id>', 'the delivery'),
  examples: ['muster deliveries retry ID'],
  async run({ db, now }, id: string) {
    const accountId = await lookUpDeliveryAccount(db, id)
    const trigger = await accountTransaction(db, accountId, (scope) =>
      attemptByState(scope, id, now()),
    )
    return {
      document: { id, trigger },
      text: [
        ATTEMPT_MESSAGES[trigger](id),
        `See the result:  muster deliveries attempts ${id}`,
      ].join('\n'),
    }
  },
})

type AttemptTrigger = 'schedule' | 'retry' | 'resend'

/** Schedules an attempt and returns its trigger. Throws `Refused` if the delivery does not exist,
 *  or waits for an earlier event of its resource. Throws `DeliveryRefused` (delivery-commands.ts)
 *  if the webhook, the account or a pause of all deliveries forbids the attempt. */
async function attemptByState(scope: WriteScope, id: string, now: Date): Promise<AttemptTrigger> {
  const delivery = await findDelivery(scope, id)
  if (!delivery) throw new Refused(`There is no delivery ${id}`)
  if (delivery.state === 'failed') {
    await retryDelivery(scope, delivery, now)
    return 'retry'
  }
  if (delivery.state === 'delivered') {
    await resendDelivery(scope, delivery, now)
    return 'resend'
  }
  const scheduled = await attemptNow(scope, delivery, now)
  if (!scheduled) throw new Refused(`There is no delivery ${id}`)
  if (scheduled.nextAttemptAt === null)
    throw new Refused(
      `Delivery ${id} is waiting until an earlier event of its resource is delivered.`,
    )
  return 'schedule'
}

const ATTEMPT_MESSAGES: Record<AttemptTrigger, (id: string) => string> = {
  schedule: (id) =>
    `Delivery ${id}: a running worker makes the next scheduled attempt within a second.`,
  retry: (id) => `Retrying delivery ${id}: a running worker makes one attempt within a second.`,
  resend: (id) =>
    `Resending delivery ${id}: a running worker makes one attempt within a second. ` +
    'The delivery stays delivered whatever the response.',
}

interface Selection {
  webhook?: string
  account?: string
  type?: string[]
}

interface RetryFailedOptions extends BulkOptions, Selection {
  since: Date
  until?: Date
}

/** Adds the options that select deliveries. */
function addSelection(command: Command): Command {
  return command
    .addOption(new Option('--webhook <id>', 'deliveries of this webhook').conflicts('account'))
    .option(
      '--account <account>',
      'deliveries of all enabled webhooks of this account (its ID or its name)',
    )
    .option(
      '--type <list>',
      'only these event types, for example participant.created,task.completed',
      parseList(...Object.keys(eventTypes)),
    )
}

function assertSelection({ webhook, account }: Selection): void {
  if (webhook === undefined && account === undefined)
    throw new UsageError("use one of the options '--webhook <id>' and '--account <account>'")
}

type Select = (webhook: string | null, types: string[] | null, now: Date) => BulkSelection

/** Starts the job, or counts its deliveries. */
async function retryAll(
  { db, now }: Pick<CommandDatabase, 'db' | 'now'>,
  options: BulkOptions & Selection,
  select: Select,
): Promise<Output> {
  const { webhook = null, account = '', type = null } = options
  const accountId =
    webhook === null
      ? (await lookUpAccount(db, account)).id
      : await lookUpWebhookAccount(db, webhook)
  return startOrPreview({ db, accountId, now }, select(webhook, type, now()), options)
}

export const retryFailed = databaseCommand({
  name: 'retry-failed',
  summary: 'retry all deliveries that failed in a period',
  description:
    'Retry every delivery of a webhook, or of an account, that failed in a period. Each gets ' +
    'one attempt. Runs in the background and continues after a restart.',
  declare: (command) =>
    addBulkOptions(
      addUntilOption(
        addSelection(command).requiredOption('--since <time>', 'start of the period', parseTime),
      ),
    ),
  examples: [
    'muster deliveries retry-failed --webhook ID --since 2026-11-21T09:00:00Z --preview',
    'muster deliveries retry-failed --account ID --type participant.created --since 2026-11-21',
  ],
  check(options: RetryFailedOptions) {
    assertSelection(options)
    assertPeriod(options)
  },
  run: (context, options: RetryFailedOptions) =>
    retryAll(context, options, (webhook, types, now) =>
      selectFailedDeliveries(webhook, types, options, now),
    ),
})

export const retryWaiting = databaseCommand({
  name: 'retry-waiting',
  summary: 'make the next attempt of all retrying deliveries now',
  description:
    'Make the next attempt of each retrying delivery of a webhook, or of an account, now, for ' +
    'example after an endpoint was repaired. It counts as an attempt of the schedule: if it fails, ' +
    'the next one follows the schedule. Runs in the background and continues after a restart.',
  declare: (command) => addBulkOptions(addSelection(command)),
  examples: [
    'muster deliveries retry-waiting --webhook ID --preview',
    'muster deliveries retry-waiting --account ID --type participant.created --rate 100',
  ],
  check: assertSelection,
  run: (context, options: BulkOptions & Selection) =>
    retryAll(context, options, selectWaitingDeliveries),
})

export const cancel = databaseCommand({
  name: 'cancel',
  summary: 'cancel the scheduled attempts of a delivery',
  description:
    'Cancel the scheduled attempts of a delivery and mark it failed. If an attempt in progress ' +
    'succeeds, the delivery is delivered nevertheless. A cancelled delivery can be retried.',
  declare: (command) => command.argument('<id>', 'the delivery'),
  examples: ['muster deliveries cancel ID'],
  async run({ db, now }, id: string) {
    const accountId = await lookUpDeliveryAccount(db, id)
    await accountTransaction(db, accountId, (scope) => cancelDelivery(scope, { id }, now()))
    return {
      document: { id, state: 'failed', failure_reason: 'cancelled' },
      text: `Cancelled delivery ${id}. It is marked failed.`,
    }
  },
})
