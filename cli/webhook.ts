import { Refused } from '../errors.ts'
import { accountTransaction, readScope } from '../records/database/scope.ts'
import type { Ordering } from '../records/subscriptions.ts'
import {
  disableWebhook,
  enableWebhook,
  findWebhook,
  insertWebhook,
  updateWebhook,
} from '../records/webhooks.ts'
import { selectMissedEvents } from '../webhooks/bulk.ts'
import { emitTest } from '../webhooks/emit.ts'
import { findSealingKey, sealHeaders } from '../webhooks/secret-keys.ts'
import { newSecret, sealSecret } from '../webhooks/transport/secret.ts'
import { auditWebhook } from './audit.ts'
import {
  addBulkOptions,
  addUntilOption,
  assertPeriod,
  type BulkOptions,
  parseTime,
  startOrPreview,
} from './bulk.ts'
import { commandGroup, databaseCommand } from './commands.ts'
import { ACCOUNT_MEANING, lookUpAccount, lookUpWebhookAccount } from './lookup.ts'
import { checkAll } from './shell.ts'
import { remove, update } from './webhook-changes.ts'
import {
  addHeaderOption,
  newOrderingOption,
  parseEventTypes,
  readDescription,
  readHeaders,
  readWebhookUrl,
  URL_MEANING,
} from './webhook-fields.ts'
import { list } from './webhook-list.ts'
import { rotate } from './webhook-rotate.ts'

interface CreateOptions {
  account: string
  url: string
  events: string
  ordering: Ordering
  description?: string
  header?: string[]
}

const CREATE = 'muster webhook create --account ID --url https://example.com/webhooks'

const create = databaseCommand({
  name: 'create',
  summary: 'create a webhook',
  description: 'Create a webhook in an account. Prints its signing secret, which is shown once.',
  declare: (command) =>
    addHeaderOption(
      command
        .requiredOption('--account <account>', ACCOUNT_MEANING)
        .requiredOption('--url <url>', URL_MEANING)
        .requiredOption(
          '--events <list>',
          "event types, for example participant.created,task.completed, or '*' for all",
        )
        .addOption(newOrderingOption().default('none'))
        .option('--description <text>', 'a name for the webhook'),
    ),
  examples: [
    `${CREATE} --events '*'`,
    `${CREATE} --events participant.created,task.completed --description "Order system"`,
  ],
  async run({ db, config, now }, options: CreateOptions) {
    const { ordering } = options
    const [eventTypes, url, description, headers] = checkAll(
      () => parseEventTypes(options.events),
      () => readWebhookUrl(options.url, config),
      () => readDescription(options.description ?? ''),
      () => readHeaders(options.header ?? []),
    )
    const { id: accountId } = await lookUpAccount(db, options.account)
    const secret = newSecret()
    const { id } = await accountTransaction(db, accountId, async (scope) => {
      const key = await findSealingKey(scope.trx, config.secretKeys)
      const created = await insertWebhook(
        scope,
        { url, description, eventTypes, ordering, createdBy: null },
        (id) => sealSecret(key, id, secret),
        now(),
      )
      const sealedHeaders = await sealHeaders(scope.trx, config.secretKeys, created.id, headers)
      await updateWebhook(scope, created.id, { headers: sealedHeaders }, now())
      const headerNames = Object.keys(headers)
      const details = { url, event_types: eventTypes, headers: headerNames.join(', ') }
      await auditWebhook(scope, created, { verb: 'created', details }, now())
      return created
    })
    return {
      document: { id, secret },
      text: [
        `Created webhook ${id}. It sends events to ${url}, starting with the next one.`,
        'Copy its signing secret now. You will not see it again:',
        '',
        `  ${secret}`,
        '',
        `See its deliveries:  muster deliveries list --webhook ${id}`,
      ].join('\n'),
    }
  },
})

const SWITCHES = [
  {
    name: 'disable',
    summary: 'stop sending to a webhook',
    description:
      'Stop sending to a webhook. Scheduled attempts are cancelled and their deliveries marked failed. ' +
      'After you enable the webhook again, send-missed sends the events that it missed.',
    change: disableWebhook,
    verb: 'disabled',
    enabled: false,
    describe: (id: string) => `Disabled webhook ${id}. Its scheduled attempts are cancelled.`,
  },
  {
    name: 'enable',
    summary: 'send to a webhook again',
    description:
      'Send to a webhook again, starting with the next event. ' +
      'To send the events that it missed, use send-missed.',
    change: enableWebhook,
    verb: 'enabled',
    enabled: true,
    describe: (id: string) =>
      `Enabled webhook ${id}. It receives events from now on.\n` +
      `Count the events that it missed:  muster webhook send-missed ${id} --preview`,
  },
]

const switches = SWITCHES.map(({ name, summary, description, change, verb, enabled, describe }) =>
  databaseCommand({
    name,
    summary,
    description,
    declare: (command) => command.argument('<id>', 'the webhook'),
    examples: [`muster webhook ${name} ID`],
    async run({ db, now }, id: string) {
      const accountId = await lookUpWebhookAccount(db, id)
      await accountTransaction(db, accountId, async (scope) => {
        const before = await change(scope, id, now())
        if (!before) throw new Refused(`There is no webhook ${id}`)
        if (before.enabled !== enabled) await auditWebhook(scope, before, { verb }, now())
      })
      return { document: { id, enabled }, text: describe(id) }
    },
  }),
)

interface MissedOptions extends BulkOptions {
  since?: Date
  until?: Date
}

const SEND_MISSED = 'muster webhook send-missed ID'

const sendMissed = databaseCommand({
  name: 'send-missed',
  summary: 'send the events that a webhook missed',
  description:
    'Send a webhook the events that it is subscribed to and never received, and resume the ' +
    'deliveries that failed because it was disabled. A missed event gets the whole retry ' +
    'schedule, and a resumed delivery the rest of it. Runs in the background and continues ' +
    'after a restart.',
  declare: (command) =>
    addBulkOptions(
      addUntilOption(
        command
          .argument('<id>', 'the webhook')
          .option(
            '--since <time>',
            'start of the period (default: when the webhook was last disabled)',
            parseTime,
          ),
      ),
    ),
  examples: [`${SEND_MISSED} --preview`, `${SEND_MISSED} --since 2026-11-21T09:00:00Z --rate 100`],
  check: (_: string, options: MissedOptions) => assertPeriod(options),
  async run({ db, now }, id: string, options: MissedOptions) {
    const accountId = await lookUpWebhookAccount(db, id)
    const webhook = await findWebhook(readScope(db, accountId), id)
    if (!webhook) throw new Refused(`There is no webhook ${id}`)
    const selection = selectMissedEvents(webhook, options, now())
    return startOrPreview({ db, accountId, now }, selection, options)
  },
})

const test = databaseCommand({
  name: 'test',
  summary: 'send a test event to a webhook',
  description:
    'Send a webhook.test event to a webhook, whatever events it is subscribed to. ' +
    'A running worker makes one attempt within a second.',
  declare: (command) => command.argument('<id>', 'the webhook'),
  examples: ['muster webhook test ID'],
  async run({ db, now }, id: string) {
    const accountId = await lookUpWebhookAccount(db, id)
    const deliveryId = await accountTransaction(db, accountId, async (scope) => {
      const webhook = await findWebhook(scope, id)
      const created = await emitTest(scope, id, now())
      if (!webhook || created === undefined) throw new Refused(`There is no webhook ${id}`)
      const details = { delivery_id: created }
      await auditWebhook(scope, webhook, { verb: 'test_sent', details }, now())
      return created
    })
    return {
      document: { id: deliveryId, webhook_id: id },
      text: [
        `Created test delivery ${deliveryId}. A running worker makes one attempt within a second.`,
        `See the result:  muster deliveries attempts ${deliveryId}`,
      ].join('\n'),
    }
  },
})

export const addCommand = commandGroup(
  'webhook',
  'Create, list, update, enable, disable, test and delete webhooks, and rotate their signing secrets. ' +
    'Running nodes apply changes at once.',
  [create, list, update, ...switches, sendMissed, test, rotate, remove],
)
