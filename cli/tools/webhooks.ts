import type { Command } from 'commander'
import type { components } from '../../generated/openapi.ts'
import { connect } from '../session.ts'
import { examples, formatTable, type Output, parseHttpUrl, type Shell } from '../shell.ts'

interface CreateOptions {
  url: string
  events: string
  description?: string
}

type EventTypes = components['schemas']['WebhookCreate']['event_types']

export function addCommand(program: Command, shell: Shell): void {
  const webhooks = program
    .command('webhooks')
    .description(
      'List, create, test and delete webhooks. The owner of the key must be permitted to manage them.',
    )
  webhooks
    .command('list')
    .description('List the webhooks of your account.')
    .addHelpText('after', examples('muster webhooks list'))
    .action(shell.action(() => list(shell)))
  webhooks
    .command('create')
    .description('Create a webhook, and print its signing secret. Nothing shows the secret again.')
    .requiredOption('--url <url>', 'the URL that receives the events', parseHttpUrl)
    .option('--events <types>', 'event types separated by commas, or * for all', '*')
    .option('--description <text>', 'a name for people')
    .addHelpText(
      'after',
      examples('muster webhooks create --url https://example.com/webhooks --events task.created'),
    )
    .action(shell.action((options: CreateOptions) => create(shell, options)))
  webhooks
    .command('test')
    .description('Send a test event.')
    .argument('<webhook>', 'the ID of the webhook')
    .addHelpText('after', examples('muster webhooks test 019cade2-11c0-7a1d-9e65-3c7b8d2f4a90'))
    .action(shell.action((id: string) => test(shell, id)))
  webhooks
    .command('delete')
    .description('Delete a webhook. Its scheduled deliveries fail.')
    .argument('<webhook>', 'the ID of the webhook')
    .addHelpText('after', examples('muster webhooks delete 019cade2-11c0-7a1d-9e65-3c7b8d2f4a90'))
    .action(shell.action((id: string) => remove(shell, id)))
}

async function list(shell: Shell): Promise<Output> {
  const webhooks = []
  for await (const webhook of connect(shell.environment).records('/public/v1/webhooks'))
    webhooks.push(webhook)
  return {
    document: webhooks,
    text: formatTable(
      ['url', 'state', 'events', 'id'],
      webhooks.map(({ url, enabled, event_types, id }) => [
        url,
        enabled ? 'enabled' : 'disabled',
        event_types.join(','),
        id,
      ]),
    ),
  }
}

async function create(shell: Shell, { url, events, description }: CreateOptions): Promise<Output> {
  const event_types = events.split(',').map((type) => type.trim()) as EventTypes
  const { data } = await connect(shell.environment).POST('/public/v1/webhooks', {
    body: { url, event_types, ...(description !== undefined && { description }) },
  })
  return {
    document: data,
    text: `Created webhook ${data.id}. Its signing secret:\n\n  ${data.secret}`,
  }
}

async function test(shell: Shell, id: string): Promise<Output> {
  const { data } = await connect(shell.environment).POST('/public/v1/webhooks/{webhook}/test', {
    params: { path: { webhook: id } },
  })
  return { document: data, text: `Sent a test event as delivery ${data.id}.` }
}

async function remove(shell: Shell, id: string): Promise<Output> {
  await connect(shell.environment).DELETE('/public/v1/webhooks/{webhook}', {
    params: { path: { webhook: id } },
  })
  return { document: { id }, text: `Deleted webhook ${id}.` }
}
