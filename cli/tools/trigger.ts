import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Argument, type Command } from 'commander'
import type { Muster } from '../../client/src/client.ts'
import { Refused } from '../../errors.ts'
import { connect, describeApiError } from '../session.ts'
import { examples, type Output, type Shell } from '../shell.ts'

const NAME = 'Test record of "muster trigger"'
const EXPORT_POLL_MS = 1_000
const MAX_EXPORT_POLLS = 60

type Fields = Record<string, unknown>

/** Creates a record of a resource and returns its ID. */
type Create = (resource: string) => Promise<string>

interface Resource {
  path: string
  body(create: Create): Promise<Fields> | Fields
  /** The update that causes each event, by the second part of the event type. */
  updates: Record<string, Fields>
}

const RESOURCES: Record<string, Resource> = {
  participant: {
    path: 'participants',
    body: () => ({ full_name: NAME, email: `${randomUUID()}@example.com` }),
    updates: { updated: { tags: ['test'] } },
  },
  task: {
    path: 'tasks',
    body: () => ({ title: NAME }),
    updates: { updated: { status: 'in_progress' }, completed: { status: 'completed' } },
  },
  job: {
    path: 'jobs',
    body: () => ({ title: NAME, status: 'open' }),
    updates: { updated: { description: NAME } },
  },
  job_application: {
    path: 'job-applications',
    body: async (create) => ({
      job_id: await create('job'),
      participant_id: await create('participant'),
    }),
    updates: { updated: { status: 'shortlisted' }, status_changed: { status: 'shortlisted' } },
  },
  payment: {
    path: 'payments',
    body: async (create) => ({
      participant_id: await create('participant'),
      amount_minor: 100,
      currency: 'EUR',
    }),
    updates: { updated: { note: NAME } },
  },
  export: { path: 'exports', body: () => ({ resource: 'tasks' }), updates: {} },
}

/** A paid payment can never be deleted, and an export fails only by a fault of the service. */
const EVENT_TYPES = Object.entries(RESOURCES).flatMap(([name, { updates }]) =>
  ['created', ...(name === 'export' ? ['completed'] : ['deleted']), ...Object.keys(updates)].map(
    (action) => `${name}.${action}`,
  ),
)

export function addCommand(program: Command, shell: Shell): void {
  program
    .command('trigger')
    .description(
      'Cause an event: create a test record, change it, and delete it again with all records that it ' +
        'needed. Each of these changes causes an event of its own.',
    )
    .addArgument(new Argument('<event type>', 'the event').choices(EVENT_TYPES))
    .addHelpText('after', examples('muster trigger task.completed'))
    .action(shell.action((type: string) => trigger(connect(shell.environment), type)))
}

/** The calls without the types of each path: the paths are in a table. */
interface Calls {
  GET(path: string): Promise<{ data: Fields }>
  POST(path: string, init: { body: Fields }): Promise<{ data: Fields }>
  PATCH(path: string, init: { body: Fields }): Promise<unknown>
  DELETE(path: string): Promise<unknown>
}

async function trigger(muster: Muster, type: string): Promise<Output> {
  const api = muster as unknown as Calls
  const [resource = '', action = ''] = type.split('.')
  /** The newest first: later records refer to earlier ones. */
  const urls: string[] = []
  const create: Create = async (name) => {
    const { path, body } = RESOURCES[name] as Resource
    const { data } = await api.POST(`/public/v1/${path}`, { body: await body(create) })
    urls.unshift(`/public/v1/${path}/${data.id}`)
    return String(data.id)
  }
  let id: string
  try {
    id = await create(resource)
    const [url = ''] = urls
    const update = RESOURCES[resource]?.updates[action]
    if (update) await api.PATCH(url, { body: update })
    if (action === 'completed' && !update) await waitForExport(api, url)
  } finally {
    await deleteAll(api, urls)
  }
  return {
    document: { event_type: type, resource_id: id },
    text: `Caused ${type} for ${id}, and deleted the test records.`,
  }
}

async function waitForExport(api: Calls, url: string): Promise<void> {
  for (let polls = 0; polls < MAX_EXPORT_POLLS; polls++) {
    const { data } = await api.GET(url)
    if (data.status === 'completed') return
    await sleep(EXPORT_POLL_MS)
  }
  throw new Refused('The test export was not completed within a minute.')
}

async function deleteAll(api: Calls, urls: string[]): Promise<void> {
  for (const url of urls)
    await api.DELETE(url).catch((error: unknown) => {
      console.error(`${url} could not be deleted: ${describeApiError(error) ?? error}`)
    })
}
