/** Wrong clocks: no row is lost, and every delivery follows its schedule once the clock is right.
 *  `CLOCKS=all` runs each case with each clock. */
import { setTimeout as delay } from 'node:timers/promises'
import { v7 as uuidv7 } from 'uuid'
import { describe, expect, inject, test } from 'vitest'
import { openDatabase } from '../../records/database/open.ts'
import { newMuster, type Started } from '../cli/muster.ts'
import { type Ready, startServing } from '../cli/serving.ts'
import { type ClockOffset, type FakeClock, faketime, newFakeClock } from '../faketime.ts'
import { newDatabase, type TestDatabase, until } from '../helpers.ts'
import { startPostgres } from '../postgres.ts'
import { type Receiver, startReceiver } from '../receiver.ts'
import { databaseOptions } from '../upgrade/muster-database.ts'
import { create } from './load.ts'

const database = inject('database')
const OFFSETS: ClockOffset[] = ['+100d', '-100d', '+3h', '-3h']
const runsAll = process.env.CLOCKS === 'all'
const DAY_MS = 86_400_000
const SETTINGS = {
  WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
  WEBHOOK_RETRY_DELAYS: '2,3,3,3,3,3,3,3,3',
}
/** A worker realigns every 5 s, and a node reads the time of PostgreSQL every 10 s: within this
 *  time, both have happened. */
const ALIGNED_MS = 40_000
const TABLES = [
  ...['events', 'deliveries', 'attempts'],
  ...['participants', 'request_log', 'idempotency_keys'],
]

type Serving = Started & { ready: Ready }

/** A service and a receiver. The service may have a wrong clock. */
interface System extends AsyncDisposable {
  records: TestDatabase
  receiver: Receiver
  /** While true, the receiver responds with 500. */
  isFailing: boolean
  serve(environment?: Record<string, string>): Promise<Serving>
  run(...args: string[]): Promise<void>
}

/** Disposing disposes the records, too. */
async function newSystem(records: TestDatabase, environment = {}): Promise<System> {
  const muster = await newMuster()
  const settings = { ...SETTINGS, ...records.environment, ...environment }
  const receiver = await startReceiver({ answers: () => (system.isFailing ? 500 : 204) })
  const system: System = {
    records,
    receiver,
    isFailing: false,
    serve: (more) => startServing(muster, { environment: { ...settings, ...more } }),
    async run(...args) {
      expect(await muster.run(args, { environment: settings })).toMatchObject({ status: 0 })
    },
    async [Symbol.asyncDispose]() {
      await muster[Symbol.asyncDispose]()
      await receiver[Symbol.asyncDispose]()
      await records[Symbol.asyncDispose]()
    },
  }
  return system
}

async function stop({ process, ended }: Serving): Promise<void> {
  process.kill('SIGTERM')
  expect(await ended).toMatchObject({ status: 0 })
}

async function post({ ready }: Serving, token: string, name: string, key = name) {
  const response = await create(ready.url, '/participants', { full_name: name }, { token, key })
  expect(response.status).toBe(201)
  const isReplayed = response.headers.get('Idempotent-Replayed') === 'true'
  return { isReplayed, record: (await response.json()) as { created_at: string } }
}

async function metric({ ready }: Serving, name: string): Promise<number> {
  const text = await (await fetch(`${ready.url}/metrics`)).text()
  return Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1])
}

async function withRecords<T>(
  { records }: System,
  read: (db: ReturnType<typeof openDatabase>) => Promise<T>,
): Promise<T> {
  const db = openDatabase(databaseOptions(records))
  try {
    return await read(db)
  } finally {
    await db.close()
  }
}

/** The number of rows by table. */
const countRows = (system: System): Promise<Record<string, number>> =>
  withRecords(system, async ({ read }) => {
    const counts = TABLES.map(async (table) => {
      const row = await read(table).count({ rows: '*' }).first()
      return [table, Number(row?.rows)] as const
    })
    return Object.fromEntries(await Promise.all(counts))
  })

/** `before`: an earlier result of `countRows`. */
async function expectNothingLost(system: System, before: Record<string, number>): Promise<void> {
  const counts = await countRows(system)
  for (const table of TABLES)
    expect(counts[table], table).toBeGreaterThanOrEqual(before[table] ?? Number.NaN)
}

/** The ID of an event that retention deletes once the clock is right. */
const OLD_EVENT = uuidv7({ msecs: Date.now() - 300 * DAY_MS })

const insertOldEvent = (system: System, { ready }: Serving): Promise<void> =>
  withRecords(system, async ({ write }) => {
    await write('events').insert({
      id: OLD_EVENT,
      account_id: ready.first_account?.account_id,
      event_type: 'task.created',
      resource_type: 'task',
      resource_id: OLD_EVENT,
      data: '[]',
      created_at: Date.now() - 300 * DAY_MS,
    })
  })

const hasOldEvent = (system: System): Promise<boolean> =>
  withRecords(
    system,
    async ({ read }) => (await read('events').where({ id: OLD_EVENT })).length > 0,
  )

async function allDelivered(system: System): Promise<void> {
  const listUndelivered = () =>
    withRecords(system, async ({ read }) => read('deliveries').whereNot({ state: 'delivered' }))
  await until('all are delivered', async () => (await listUndelivered()).length === 0, ALIGNED_MS)
}

/** Starts a node with the right clock. Creates a webhook, an event that is delivered, and an event
 *  whose attempts fail until `isFailing` is false. */
async function begin(system: System): Promise<{ node: Serving; token: string }> {
  const node = await system.serve()
  const account = node.ready.first_account
  if (!account) throw new Error('The start created no account')
  const { account_id: id, token } = account
  const webhook = ['--account', id, '--url', system.receiver.url, '--events', '*']
  await system.run('webhook', 'create', ...webhook)
  await post(node, token, 'Before')
  await allDelivered(system)
  system.isFailing = true
  await post(node, token, 'Retried')
  await system.receiver.received(2)
  return { node, token }
}

/** In embedded mode, `clock` is the clock of the machine. In PostgreSQL mode, only the database
 *  server has it. */
async function newSystemWithClock(clock: FakeClock): Promise<System> {
  if (database === 'sqlite') return newSystem(await newDatabase(), clock.environment)
  const server = await startPostgres({ environment: clock.environment })
  return newSystem({
    environment: {
      DATABASE_URL: await server.createDatabase(),
      SECRET_KEY: 'a secret key that only tests would ever use',
    },
    [Symbol.asyncDispose]: server.stop,
  })
}

/** When the clock jumps. */
type Moment = 'at a start' | 'while it runs'

/** The cases without `CLOCKS=all`. */
const CASES: Record<typeof database, [ClockOffset, Moment][]> = {
  sqlite: [
    ['+100d', 'at a start'],
    ['-100d', 'at a start'],
    ['+3h', 'while it runs'],
  ],
  postgres: [
    ['+100d', 'at a start'],
    ['-3h', 'while it runs'],
  ],
}

/** A start with a clock that is ahead by less than a day looks like a stop of the service. */
const putsInDoubt = (offset: ClockOffset, moment: Moment): boolean =>
  offset !== '+3h' || moment !== 'at a start'

async function jumpAndReturn(offset: ClockOffset, moment: Moment): Promise<void> {
  await using clock = await newFakeClock()
  await using system = await newSystemWithClock(clock)
  let { node, token } = await begin(system)
  const setClock = async (to: ClockOffset): Promise<void> => {
    if (moment === 'at a start') await stop(node)
    clock.set(to)
    // Processes read the file once a second.
    await delay(2_100)
    if (moment === 'at a start') node = await system.serve()
    await until(
      'the clock is in doubt, or looks right',
      async () => (await metric(node, 'muster_clock_in_doubt')) === Number(putsInDoubt(to, moment)),
      ALIGNED_MS,
    )
  }
  // The retention that runs at the start may delete the event: the clock is still right.
  await until(
    'the retention has run',
    async () =>
      (await metric(node, 'muster_retention_last_run_timestamp_seconds{kind="retention"}')) > 0,
    ALIGNED_MS,
  )
  await insertOldEvent(system, node)
  const before = await countRows(system)

  await setClock(offset)
  expect((await post(node, token, 'Before')).isReplayed).toBe(true)
  const requestCount = system.receiver.requests.length
  await post(node, token, 'During')
  await system.receiver.received(requestCount + 1, ALIGNED_MS)
  await expectNothingLost(system, before)

  await setClock('+0')
  system.isFailing = false
  await allDelivered(system)
  expect((await post(node, token, 'During')).isReplayed).toBe(true)
  await post(node, token, 'After')
  await allDelivered(system)
  expect(await hasOldEvent(system)).toBe(putsInDoubt(offset, moment))
  await expectNothingLost(system, before)
  await stop(node)
  const after = await countRows(system)

  await system.run('doctor', '--confirm-clock')
  node = await system.serve()
  expect(await metric(node, 'muster_clock_in_doubt')).toBe(0)
  await until('the old event is deleted', async () => !(await hasOldEvent(system)), ALIGNED_MS)
  await stop(node)
  await expectNothingLost(system, { ...after, events: (after.events ?? 0) - 1 })
}

describe.runIf(faketime)('the clock of the database is wrong', { timeout: 180_000 }, () => {
  const cases: [ClockOffset, Moment][] = runsAll
    ? OFFSETS.flatMap((offset): [ClockOffset, Moment][] => [
        [offset, 'at a start'],
        [offset, 'while it runs'],
      ])
    : CASES[database]
  test.each(cases)(
    'by %s, from a jump %s until its return: no row is lost, and all is delivered',
    jumpAndReturn,
  )
})

test.runIf(faketime)(
  'a retry keeps its delay when the clock of the database returns from 3 hours behind',
  { timeout: 180_000 },
  async () => {
    await using clock = await newFakeClock()
    clock.set('-3h')
    await using system = await newSystemWithClock(clock)
    const { node } = await begin(system)
    const id = system.receiver.requests.at(-1)?.headers['webhook-id']
    clock.set('+0')
    await delay(8_000)
    const attempts = system.receiver.requests.filter(({ headers }) => headers['webhook-id'] === id)
    // Seconds 0, 2, 5 and 8, and the attempt that became due when the clock returned.
    expect(attempts.length).toBeGreaterThan(1)
    expect(attempts.length).toBeLessThanOrEqual(5)
    await stop(node)
  },
)

describe.runIf(faketime && database === 'postgres')(
  'the clocks of nodes are wrong',
  { timeout: 180_000 },
  () => {
    const cases: [ClockOffset, ClockOffset][] = runsAll
      ? OFFSETS.flatMap((offset): [ClockOffset, ClockOffset][] => [
          ['+0', offset],
          [offset, offset],
        ])
      : [
          ['+0', '+100d'],
          ['-100d', '+3h'],
        ]
    test.each(cases)(
      'one by %s, the other by %s: both use the time of PostgreSQL',
      async (first, second) => {
        await using system = await newSystem(await newDatabase())
        const { node: nodeWithRightClock, token } = await begin(system)
        await stop(nodeWithRightClock)
        await using clocks = new AsyncDisposableStack()
        const nodes: (Serving & { clock: FakeClock })[] = []
        for (const offset of [first, second]) {
          const clock = clocks.use(await newFakeClock())
          clock.set(offset)
          nodes.push({ ...(await system.serve(clock.environment)), clock })
        }
        const before = await countRows(system)
        for (const [index, node] of nodes.entries()) {
          const { record } = await post(node, token, `By-${index}`)
          expect(Math.abs(Date.parse(record.created_at) - Date.now())).toBeLessThan(5_000)
          expect((await post(node, token, 'Before')).isReplayed).toBe(true)
          expect(await metric(node, 'muster_clock_in_doubt')).toBe(0)
        }
        for (const { clock } of nodes) clock.set('+0')
        system.isFailing = false
        await allDelivered(system)
        await expectNothingLost(system, before)
        for (const node of nodes) {
          await stop(node)
          // A timer until a time of the wrong clock would be longer than Node.js allows.
          expect(node.output.stderr).not.toContain('TimeoutOverflowWarning')
        }
      },
    )
  },
)
