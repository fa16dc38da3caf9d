import { Refused } from '../errors.ts'
import { changesBetween } from '../records/audit-log.ts'
import { accountTransaction } from '../records/database/scope.ts'
import type { Ordering } from '../records/subscriptions.ts'
import { deleteWebhook, findWebhook, toAuditDetails, updateWebhook } from '../records/webhooks.ts'
import { sealHeaders } from '../webhooks/secret-keys.ts'
import type { HeaderChange } from '../webhooks/transport/custom-headers.ts'
import { auditWebhook } from './audit.ts'
import { databaseCommand } from './commands.ts'
import { lookUpWebhookAccount } from './lookup.ts'
import { checkAll, UsageError } from './shell.ts'
import {
  addHeaderOption,
  collect,
  newOrderingOption,
  parseEventTypes,
  readDescription,
  readHeaders,
  readWebhookUrl,
  URL_MEANING,
} from './webhook-fields.ts'

interface UpdateOptions {
  url?: string
  events?: string
  ordering?: Ordering
  description?: string
  header?: string[]
  removeHeader?: string[]
}

const UPDATE = 'muster webhook update ID'

export const update = databaseCommand({
  name: 'update',
  summary: 'change the URL, the events, the order, the description or the headers',
  description:
    'Change a webhook. Fields without an option stay as they are. Scheduled attempts use the new URL and ' +
    'headers. ' +
    'New event types and a new order apply to future events.',
  declare: (command) =>
    addHeaderOption(
      command
        .argument('<id>', 'the webhook')
        .option('--url <url>', URL_MEANING)
        .option('--events <list>', "event types, separated by commas, or '*' for all")
        .addOption(newOrderingOption())
        .option('--description <text>', "a name for the webhook, or '' for none"),
    ).option('--remove-header <name>', 'remove a header; can be repeated', collect),
  examples: [
    `${UPDATE} --url https://example.com/webhooks/2`,
    `${UPDATE} --events participant.created,task.completed --description 'Order system'`,
    `${UPDATE} --header 'X-Api-Key: value'`,
  ],
  check(_: string, options: UpdateOptions) {
    if (Object.keys(options).length === 0)
      throw new UsageError(
        'Use at least one of --url, --events, --ordering, --description, --header and --remove-header.',
      )
  },
  async run({ db, config, now }, id: string, options: UpdateOptions) {
    const { url, events, ordering, description } = options
    const [newUrl, eventTypes, newDescription, headers] = checkAll(
      () => (url === undefined ? undefined : readWebhookUrl(url, config)),
      () => (events === undefined ? undefined : parseEventTypes(events)),
      () => (description === undefined ? undefined : readDescription(description)),
      () => readHeaderChange(options),
    )
    const accountId = await lookUpWebhookAccount(db, id)
    const changes = await accountTransaction(db, accountId, async (scope) => {
      const sealedHeaders = await sealHeaders(scope.trx, config.secretKeys, id, headers)
      const before = await findWebhook(scope, id)
      const after = await updateWebhook(
        scope,
        id,
        { url: newUrl, eventTypes, description: newDescription, ordering, headers: sealedHeaders },
        now(),
      )
      if (!before || !after) throw new Refused(`There is no webhook ${id}`)
      const differences = changesBetween(
        toAuditDetails(before),
        toAuditDetails(after, sealedHeaders),
      )
      if (differences) {
        const details = { changes: differences }
        await auditWebhook(scope, after, { verb: 'updated', details }, now())
      }
      return differences ?? {}
    })
    const names = Object.keys(changes).map((name) => name.replaceAll('_', ' '))
    return {
      document: { id, changes },
      text:
        names.length === 0
          ? `Webhook ${id} has these values already.`
          : `Updated webhook ${id}: ${names.join(', ')}.`,
    }
  },
})

function readHeaderChange({ header = [], removeHeader = [] }: UpdateOptions): HeaderChange {
  const removed = Object.fromEntries(removeHeader.map((name) => [name, null]))
  return { ...removed, ...readHeaders(header) }
}

export const remove = databaseCommand({
  name: 'delete',
  summary: 'delete a webhook for good',
  description:
    'Delete a webhook. Nothing more is sent to it: scheduled attempts are cancelled and their deliveries ' +
    'marked failed. Its delivery log is no longer shown. This cannot be undone; to stop sending for a ' +
    'while, use disable.',
  declare: (command) => command.argument('<id>', 'the webhook'),
  examples: ['muster webhook delete ID'],
  async run({ db, now }, id: string) {
    const accountId = await lookUpWebhookAccount(db, id)
    const deleted = await accountTransaction(db, accountId, async (scope) => {
      const webhook = await deleteWebhook(scope, id, now())
      if (!webhook) throw new Refused(`There is no webhook ${id}`)
      const details = { url: webhook.url }
      await auditWebhook(scope, webhook, { verb: 'deleted', details }, now())
      return webhook
    })
    return {
      document: { id, deleted: true },
      text: `Deleted webhook ${id}. It sends nothing more to ${deleted.url}.`,
    }
  },
})
