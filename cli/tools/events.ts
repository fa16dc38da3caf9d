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
