import { type Command, Option } from 'commander'
import { validate as isUuid } from 'uuid'
import { Refused } from '../errors.ts'
import { eventTypes } from '../generated/events.ts'
import { hasAccount, listAccountIds } from '../records/accounts.ts'
import { insertAuditEntry } from '../records/audit-log.ts'
import { countSelected } from '../records/bulk-jobs.ts'
import type { Db } from '../records/database/open.ts'
import { accountScope, type WriteScope, writeScope } from '../records/database/scope.ts'
import { transaction } from '../records/database/transaction.ts'
import {
  activateSecret,
  disableWebhook,
  enableWebhook,
  findAccountOfWebhook,
  findWebhook,
  insertWebhook,
  listWebhooks,
  type Ordering,
  orderings,
  prepareSecret,
  type Webhook,
  webhookName,
} from '../records/webhooks.ts'
import { DEFAULT_RATE, MAX_RATE, missedBy, startBulkJob } from '../webhooks/bulk.ts'
import { emitTest } from '../webhooks/emit.ts'
import { assertWebhookUrl } from '../webhooks/transport/egress.ts'
import { newSecret, sealSecret } from '../webhooks/transport/secret.ts'
import { assertSpan, momentOf, rateOf, sayPreview, sayStarted } from './bulk.ts'
import { examples, type Output, type Shell, table, timeOf, WrongUsage } from './shell.ts'

interface CreateOptions {
  account: string
  url: string
  events: string
  ordering: Ordering
  description: string
}

interface MissedOptions {
  since?: Date
  until?: Date
  rate: number
  preview?: boolean
}

export function addWebhook(program: Command, shell: Shell): void {
  const webhook = program
    .command('webhook')
    .description('Make, list, switch and re-key webhooks. Running servers follow at once.')

  webhook
    .command('create')
    .summary('make a webhook of an account')
    .description('Make a webhook of an account. Its signing secret is shown once.')
    .requiredOption('--account <id>', 'the account')
    .requiredOption(
      '--url <url>',
      'where to POST to: https, or http to an address in WEBHOOK_ALLOW_ADDRESSES',
    )
    .requiredOption(
      '--events <list>',
      "event types such as participant.created,task.completed, or '*' for all",
    )
    .addOption(
      new Option(
        '--ordering <ordering>',
        'by_resource: the events of one resource one after the other, each once the one before has arrived',
      )
        .choices(orderings)
        .default('none'),
    )
    .option('--description <text>', 'what it is for', '')
    .addHelpText(
      'after',
      examples(
        "muster webhook create --account ID --url https://example.com/webhooks --events '*'",
        'muster webhook create --account ID --url https://example.com/webhooks --events participant.created,task.completed',
      ),
    )
    .action(
      shell.action((options: CreateOptions) =>
        shell.records(async ({ db, config }): Promise<Output> => {
          const { account, description, ordering } = options
          const eventTypes = eventTypesOf(options.events)
          if (!isUuid(account) || !(await hasAccount(db.read, account)))
            throw new Refused(`There is no account ${account}`)
          const url = assertWebhookUrl(options.url, config.webhookAllowAddresses)
          const secret = newSecret()
          const seal = (id: string): string => sealSecret(config.secretKey, id, secret)
          const { id } = await transaction(db, async (trx) => {
            const scope = writeScope(trx, account)
            const made = await insertWebhook(
              scope,
              { url, description, eventTypes, ordering, createdBy: null },
              seal,
              new Date(),
            )
            await audit(scope, made, 'created', { url, event_types: eventTypes })
            return made
          })
          return {
            document: { id, secret },
            text: [
              `Webhook ${id} posts to ${url} from the next event on. Its signing secret is shown this once:`,
              '',
              `  ${secret}`,
              '',
              `See what it delivers:  muster deliveries list --webhook ${id}`,
            ].join('\n'),
          }
        }),
      ),
    )

  webhook
    .command('list')
    .summary('list webhooks')
    .description('List webhooks, oldest first.')
    .option('--account <id>', 'only those of this account')
    .addHelpText(
      'after',
      examples('muster webhook list', 'muster webhook list --account ID --json'),
    )
    .action(
      shell.action(({ account }: { account?: string }) =>
        shell.records(async ({ db }): Promise<Output> => {
          const webhooks = await webhooksOf(db, account)
          const text =
            webhooks.length === 0
              ? "There are no webhooks. Make one:  muster webhook create --account ID --url URL --events '*'"
              : tableOf(webhooks)
          return { document: webhooks.map(documentOf), text }
        }),
      ),
    )

  webhook
    .command('disable')
    .summary('stop deliveries to a webhook')
    .description(
      'Stop deliveries to a webhook. Those that are scheduled end as failed. What it misses can be sent once it is enabled again.',
    )
    .argument('<id>', 'the webhook')
    .addHelpText('after', examples('muster webhook disable 0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11'))
    .action(shell.action((id: string) => switchWebhook(shell, id, false)))

  webhook
    .command('enable')
    .summary('deliver to a webhook again')
    .description(
      'Deliver to a webhook again, from the next event on. What it has missed is sent with send-missed.',
    )
    .argument('<id>', 'the webhook')
    .addHelpText('after', examples('muster webhook enable 0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11'))
    .action(shell.action((id: string) => switchWebhook(shell, id, true)))

  webhook
    .command('send-missed')
    .summary('send what a webhook missed while it was disabled')
    .description(
      'Send a webhook the events that it is subscribed to and has not got, and take up the deliveries that ended when it was disabled. Each has the whole schedule of attempts. It is done in the background, and goes on after a restart.',
    )
    .argument('<id>', 'the webhook')
    .option('--since <time>', 'events from then on (default: when it was last disabled)', momentOf)
    .option('--until <time>', 'events before then (default: now)', momentOf)
    .option('--rate <n>', `deliveries a second, at most ${MAX_RATE}`, rateOf, DEFAULT_RATE)
    .option('--preview', 'only say how many it would be')
    .addHelpText(
      'after',
      examples(
        'muster webhook send-missed 0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11 --preview',
        'muster webhook send-missed 0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11 --since 2026-11-21T09:00:00Z --rate 100',
      ),
    )
    .action(shell.action((id: string, options: MissedOptions) => sendMissed(shell, id, options)))

  webhook
    .command('test')
    .summary('send a test event to a webhook')
    .description(
      'Send an event webhook.test to a webhook, whatever it is subscribed to: one attempt, at once.',
    )
    .argument('<id>', 'the webhook')
    .addHelpText('after', examples('muster webhook test 0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11'))
    .action(shell.action((id: string) => sendTest(shell, id)))

  webhook
    .command('rotate')
    .summary('change the signing secret without a gap')
    .description(
      'Change the signing secret without a gap: prepare the next one, teach it to the receiver, then activate it.',
    )
    .argument('<id>', 'the webhook')
    .option('--activate', 'sign with the prepared secret from the next attempt on')
    .addHelpText(
      'after',
      examples(
        'muster webhook rotate 0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11',
        'muster webhook rotate 0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11 --activate',
      ),
    )
    .action(
      shell.action((id: string, { activate = false }: { activate?: boolean }) =>
        activate ? activateNext(shell, id) : prepareNext(shell, id),
      ),
    )
}

/** `*` stands for all types, those to come included. */
function eventTypesOf(given: string): string[] {
  const wanted = new Set(given.split(',').map((type) => type.trim()))
  if (wanted.has('*')) return ['*']
  for (const type of wanted)
    if (!Object.hasOwn(eventTypes, type))
      throw new WrongUsage(
        `option '--events <list>': "${type}" is no event type. There are ${Object.keys(eventTypes).join(', ')} and '*' for all.`,
      )
  return [...wanted]
}

async function webhooksOf(db: Db, account: string | undefined): Promise<Webhook[]> {
  if (account !== undefined && !(isUuid(account) && (await hasAccount(db.read, account))))
    throw new Refused(`There is no account ${account}`)
  const accounts = account === undefined ? await listAccountIds(db.read) : [account]
  const lists = await Promise.all(
    accounts.map((id) => listWebhooks(accountScope({ dialect: db.dialect, sql: db.read }, id))),
  )
  return lists.flat()
}

/** The account of a webhook. Throws `Refused` when there is no such webhook. */
async function accountOf(db: Db, id: string): Promise<string> {
  const accountId = isUuid(id) ? await findAccountOfWebhook(db.read, id) : undefined
  if (accountId === undefined) throw new Refused(`There is no webhook ${id}`)
  return accountId
}

function switchWebhook(shell: Shell, id: string, enabled: boolean): Promise<Output> {
  return shell.records(async ({ db }) => {
    const accountId = await accountOf(db, id)
    const change = enabled ? enableWebhook : disableWebhook
    await transaction(db, async (trx) => {
      const scope = writeScope(trx, accountId)
      await audit(scope, await change(scope, id, new Date()), enabled ? 'enabled' : 'disabled')
    })
    const text = enabled
      ? `Webhook ${id} is enabled: it gets the events from now on.\nSee what it missed:  muster webhook send-missed ${id} --preview`
      : `Webhook ${id} is disabled: it gets nothing, and its scheduled deliveries have ended as failed.`
    return { document: { id, enabled }, text }
  })
}

function sendMissed(
  shell: Shell,
  id: string,
  { rate, preview = false, ...span }: MissedOptions,
): Promise<Output> {
  assertSpan(span)
  return shell.records(async ({ db }) => {
    const now = new Date()
    const accountId = await accountOf(db, id)
    const scope = accountScope({ dialect: db.dialect, sql: db.read }, accountId)
    const webhook = await findWebhook(scope, id)
    if (!webhook) throw new Refused(`There is no webhook ${id}`)
    const selection = missedBy(webhook, span, now)
    if (preview) return sayPreview(selection, await countSelected(scope, selection))
    return sayStarted(await startBulkJob(db, accountId, selection, { rate, createdBy: null }, now))
  })
}

function sendTest(shell: Shell, id: string): Promise<Output> {
  return shell.records(async ({ db }) => {
    const accountId = await accountOf(db, id)
    const delivery = await transaction(db, async (trx) => {
      const scope = writeScope(trx, accountId)
      const made = await emitTest(scope, id, new Date())
      await audit(scope, await findWebhook(scope, id), 'test_sent', { delivery_id: made })
      return made
    })
    if (delivery === undefined) throw new Refused(`There is no webhook ${id}`)
    return {
      document: { id: delivery, webhook_id: id },
      text: [
        `Delivery ${delivery} is a test of webhook ${id}: a running server makes one attempt within a second.`,
        `See what came of it:  muster deliveries attempts ${delivery}`,
      ].join('\n'),
    }
  })
}

function prepareNext(shell: Shell, id: string): Promise<Output> {
  return shell.records(async ({ db, config }) => {
    const accountId = await accountOf(db, id)
    const secret = newSecret()
    const sealed = sealSecret(config.secretKey, id, secret)
    await transaction(db, async (trx) => {
      const scope = writeScope(trx, accountId)
      const webhook = await prepareSecret(scope, id, sealed, new Date())
      if (!webhook) throw new Refused(`There is no webhook ${id}`)
      await audit(scope, webhook, 'secret_prepared')
    })
    return {
      document: { id, next_secret: secret },
      text: [
        `The next signing secret of webhook ${id}, shown this once:`,
        '',
        `  ${secret}`,
        '',
        'The present one signs until you have taught this one to the receiver and activate it:',
        `  muster webhook rotate ${id} --activate`,
      ].join('\n'),
    }
  })
}

function activateNext(shell: Shell, id: string): Promise<Output> {
  return shell.records(async ({ db }) => {
    const accountId = await accountOf(db, id)
    await transaction(db, async (trx) => {
      const scope = writeScope(trx, accountId)
      await audit(scope, await activateSecret(scope, id, new Date()), 'secret_activated')
    })
    return {
      document: { id, activated: true },
      text: `Webhook ${id} signs with its new secret from the next attempt on.`,
    }
  })
}

/** Says in the account's audit log what the operator did. Nothing, where there is no webhook any more. */
async function audit(
  scope: WriteScope,
  webhook: Webhook | undefined,
  verb: string,
  details = {},
): Promise<void> {
  if (!webhook) return
  const target = { type: 'webhook', id: webhook.id, name: webhookName(webhook) } as const
  await insertAuditEntry(
    scope,
    { user: null, action: `webhook.${verb}`, target, details, ip: null },
    new Date(),
  )
}

function documentOf(webhook: Webhook) {
  return {
    id: webhook.id,
    account_id: webhook.accountId,
    url: webhook.url,
    description: webhook.description,
    event_types: webhook.eventTypes,
    ordering: webhook.ordering,
    enabled: webhook.enabled,
    disabled_at: timeOf(webhook.disabledAt),
    has_next_secret: webhook.hasNextSecret,
    created_at: timeOf(webhook.createdAt),
    updated_at: timeOf(webhook.updatedAt),
  }
}

function tableOf(webhooks: Webhook[]): string {
  return table(
    ['ID', 'STATE', 'URL', 'EVENTS'],
    webhooks.map(({ id, enabled, url, eventTypes }) => [
      id,
      enabled ? 'enabled' : 'disabled',
      url,
      eventTypes.join(','),
    ]),
  )
}
