import type { Command } from 'commander'
import type { ListParameters } from '../../client/src/pages.ts'
import { connect } from '../session.ts'
import { examples, formatTable, type Output, parseInteger, type Shell } from '../shell.ts'

interface ListOptions {
  webhook?: string
  state?: string
  limit: number
}

const DEFAULT_LIMIT = 25

export function addCommand(program: Command, shell: Shell): void {
  const deliveries = program
    .command('deliveries')
    .description(
      'List and retry deliveries. The owner of the key must be permitted to manage webhooks.',
    )
  deliveries
    .command('list')
    .description('List the newest deliveries of your account.')
    .option('--webhook <id>', 'only deliveries of this webhook')
    .option('--state <states>', 'only deliveries in these states, separated by commas')
    .option('--limit <n>', 'at most this many deliveries', parseInteger(1, 100), DEFAULT_LIMIT)
    .addHelpText('after', examples('muster deliveries list --state failed,retrying --watch'))
    .action(shell.action((options: ListOptions) => list(shell, options)))
  deliveries
    .command('retry')
    .description('Retry a failed delivery.')
    .argument('<delivery>', 'the ID of the delivery')
    .addHelpText('after', examples('muster deliveries retry 019cade2-11c0-7b6c-8d2e-5f4a9c1b3e70'))
    .action(shell.action((id: string) => retry(shell, id)))
}

async function list(shell: Shell, { webhook, state, limit }: ListOptions): Promise<Output> {
  const query = {
    sort: ['-id'],
    'page[size]': limit,
    ...(webhook && { 'filter[webhook_id]': webhook }),
    // The service refuses unknown states, and names the known ones.
    ...(state && { 'filter[state]': state.split(',') }),
  } as ListParameters<'/public/v1/deliveries'>
  const { data: page } = await connect(shell.environment).GET('/public/v1/deliveries', {
    params: { query },
  })
  return {
    document: page.data,
    text: formatTable(
      ['created', 'type', 'state', 'attempts', 'id'],
      page.data.map(({ created_at, event_type, state: now, attempt_count, id }) => [
        created_at,
        event_type,
        now,
        String(attempt_count),
        id,
      ]),
    ),
  }
}

async function retry(shell: Shell, id: string): Promise<Output> {
  const { data } = await connect(shell.environment).POST('/public/v1/deliveries/{delivery}/retry', {
    params: { path: { delivery: id } },
  })
  return { document: data, text: `Delivery ${id} is ${data.state}. An attempt follows at once.` }
}
