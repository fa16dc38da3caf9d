import type { Command } from 'commander'
import type { components } from '../../generated/openapi.ts'
import { connect } from '../session.ts'
import { examples, formatTable, type Output, parseInteger, type Shell } from '../shell.ts'

type Event = components['schemas']['Event']

interface ListOptions {
  type?: string[]
  resource?: string
  since?: string
  limit: number
}

const DEFAULT_LIMIT = 25

export function addCommand(program: Command, shell: Shell): void {
  const events = program.command('events').description('List, show and resend events.')
  events
    .command('list')
    .description('List the newest events of your account.')
    .option('--type <types>', 'only events of these types, separated by commas', (list) =>
      list.split(',').map((type) => type.trim()),
    )
    .option('--resource <id>', 'only events of this record')
    .option('--since <time>', 'only events after this time, for example 2026-01-31T12:00:00Z')
    .option('--limit <n>', 'at most this many events', parseInteger(1, 100), DEFAULT_LIMIT)
    .addHelpText(
      'after',
      examples('muster events list', 'muster events list --type task.created,task.updated --watch'),
    )
    .action(shell.action((options: ListOptions) => list(shell, options)))
  events
    .command('show')
    .description('Show an event and its deliveries.')
    .argument('<event>', 'the ID of the event')
    .addHelpText('after', examples('muster events show 019cade2-11c0-7e52-9c30-4f8a2e7d5b19'))
    .action(shell.action((id: string) => show(shell, id)))
  events
    .command('resend')
    .description(
      'Send the deliveries of an event again: retry the failed ones, and resend the delivered ones. The ' +
        'owner of the key must be permitted to manage webhooks.',
    )
    .argument('<event>', 'the ID of the event')
    .addHelpText('after', examples('muster events resend 019cade2-11c0-7e52-9c30-4f8a2e7d5b19'))
    .action(shell.action((id: string) => resend(shell, id)))
}

async function list(shell: Shell, { type, resource, since, limit }: ListOptions): Promise<Output> {
  const { data: page } = await connect(shell.environment).GET('/public/v1/events', {
    params: {
      query: {
        sort: ['-created_at'],
        'page[size]': limit,
        // The service refuses unknown types, and names the known ones.
        ...(type && { 'filter[event_type]': type as Event['event_type'][] }),
        ...(resource && { 'filter[resource_id]': resource }),
        ...(since && { 'filter[created_after]': since }),
      },
    },
  })
  return {
    document: page.data,
    text: formatTable(
      ['created', 'type', 'resource', 'id'],
      page.data.map(({ created_at, event_type, resource: { id }, ...event }) => [
        created_at,
        event_type,
        id,
        event.id,
      ]),
    ),
  }
}

async function show(shell: Shell, id: string): Promise<Output> {
  const { data: event } = await connect(shell.environment).GET('/public/v1/events/{event}', {
    params: { path: { event: id } },
  })
  return { document: event, text: JSON.stringify(event, null, 2) }
}

async function resend(shell: Shell, id: string): Promise<Output> {
  const muster = connect(shell.environment)
  const { data: event } = await muster.GET('/public/v1/events/{event}', {
    params: { path: { event: id } },
  })
  const sent: string[] = []
  for (const delivery of event.delivery_ids ?? []) {
    const params = { path: { delivery } }
    const { data } = await muster.GET('/public/v1/deliveries/{delivery}', { params })
    // A delivery with scheduled attempts needs no other.
    if (data.state === 'failed')
      await muster.POST('/public/v1/deliveries/{delivery}/retry', { params })
    else if (data.state === 'delivered')
      await muster.POST('/public/v1/deliveries/{delivery}/resend', { params })
    else continue
    sent.push(delivery)
  }
  return {
    document: { deliveries: sent },
    text:
      sent.length === 0
        ? 'The event has no delivery that has ended.'
        : `Sent again: ${sent.join(', ')}.`,
  }
}
