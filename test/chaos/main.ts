/** `npm run chaos`: checks the delivery promises while processes fail at random times. */
import { randomBytes } from 'node:crypto'
import { Command, InvalidArgumentError, Option } from 'commander'
import { formatTable, parseList } from '../../cli/shell.ts'
import { type DatabaseKind, databaseKinds } from '../bench/set-up.ts'
import { MAX_REPEATS_PER_WORKER } from './audit.ts'
import { faultKinds } from './faults.ts'
import { chaos, RECEIVERS, type Report } from './run.ts'

interface Options {
  minutes: number
  on: DatabaseKind[]
  seed: string
  json: boolean
}

const MINUTE_MS = 60_000
const REST_MS: [number, number] = [500, 4_000]
const CALM_MS = 20_000
/** The default of `serve`. */
const TIMEOUT_MS = 15_000
const ORPHAN_WITHIN_MS: Record<DatabaseKind, number> = { postgres: 17_000, sqlite: 3_000 }
const MAX_SHOWN = 20

const options: Options = new Command('npm run chaos --')
  .description(
    'Runs nodes under load, causes random faults, and compares acknowledged changes with the webhook requests.',
  )
  .option('--minutes <number>', 'how long faults happen, on each database', positive, 5)
  .addOption(
    new Option('--on <databases>', 'sqlite or postgres')
      .argParser(parseList(...databaseKinds))
      .default([...databaseKinds], 'both'),
  )
  .option(
    '--seed <text>',
    'determines kind, target, time and duration of the faults; each run prints its seed',
    randomBytes(4).toString('hex'),
  )
  .option('--json', 'print one JSON document instead of the table', false)
  .addHelpText(
    'after',
    `
The installation:
  on postgres  a server of its own; an API node, a node of both roles, two workers
  on sqlite    one node in embedded mode
  Ten clients create and update records over HTTP, some with idempotency keys. Three receivers respond after
  0, 50 and 200 ms. A fourth takes 14.9 of the 15 seconds that an attempt may take.

The faults, each kind equally often, also several at once, with 20 seconds of rest after each round:
  API node killed, worker killed     SIGKILL, and a restart after up to 2 s
  worker frozen                      SIGSTOP for longer than its leases last, then SIGCONT
  PostgreSQL killed                  SIGKILL to all of its processes, and a restart after up to 5 s
  PostgreSQL restarted during a start   the same while a killed node starts again
  wrong SECRET_KEY                   SIGTERM, a start with another key, and one with the right key
  clock jumped                       100 days or 1 day ahead or back, for up to 10 s (needs libfaketime)
  disk full                          no file of the database can grow for up to 6 s (needs root, to mount it)
  connections cut                    pg_terminate_backend for half of all connections
  receiver hangs, resets, half-closes   for 2 to 6 s

The promises (exit status 1 when one is broken):
  every change with a 2xx response has its event, and every event arrives at every webhook with the stored bytes
  every delivery ends "delivered", and within two minutes
  an attempt is repeated only if it was in flight during a fault, and at most ${MAX_REPEATS_PER_WORKER} for each affected process
  other workers repeat the attempts of a dead or frozen worker within 17 s; in embedded mode the node repeats them
  within 3 s after it is ready again
  a 5xx is a 503 with Retry-After and X-Change-Outcome; after "none", the record does not exist
  a healthy node always responds; no change is acknowledged while PostgreSQL is down
  a node refuses a SECRET_KEY that does not fit the database
  every node stops cleanly on SIGTERM

The seed determines the faults, but not the exact timing of the processes.
`,
  )
  .parse()
  .opts()

// Without these listeners a signal would leave servers running.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

const reports: Report[] = []
for (const database of options.on) {
  const began = Date.now()
  const progress = (text: string): void => {
    const seconds = Math.floor((Date.now() - began) / 1000)
    process.stderr.write(
      `${database} ${String(Math.floor(seconds / 60)).padStart(2, '0')}:${String(seconds % 60).padStart(2, '0')}  ${text}\n`,
    )
  }
  progress(`seed ${options.seed}`)
  const { seed, minutes } = options
  const pace = { forMs: minutes * MINUTE_MS, restMs: REST_MS, calmMs: CALM_MS }
  const times = {
    timeoutMs: TIMEOUT_MS,
    slowReceiverMs: TIMEOUT_MS - 100,
    orphanWithinMs: ORPHAN_WITHIN_MS[database],
  }
  reports.push(await chaos({ database, seed, ...pace, ...times, progress }))
}
console.log(options.json ? JSON.stringify(reports, null, 2) : formatReports(reports))
if (reports.some(({ broken }) => broken.length > 0)) process.exitCode = 1

function positive(text: string): number {
  const value = Number(text)
  if (!(value > 0)) throw new InvalidArgumentError('It must be a number above 0.')
  return value
}

function formatReports(reports: Report[]): string {
  const rows: [string, (report: Report) => string][] = [
    ['seed', ({ seed }) => seed],
    ['duration', ({ seconds }) => `${seconds} s`],
    ...faultKinds.map((kind): [string, (report: Report) => string] => [
      kind,
      ({ faults }) => `${faults[kind] ?? 0}`,
    ]),
    ['responses', ({ responses }) => counts(responses)],
    [
      'responses while PostgreSQL was down',
      ({ responsesWithoutDatabase }) => counts(responsesWithoutDatabase),
    ],
    ['longest response of a healthy node', ({ longestResponseMs }) => seconds(longestResponseMs)],
    ['longest restart of a killed node', ({ longestRestartMs }) => seconds(longestRestartMs)],
    ['changes acknowledged', ({ acknowledged }) => number(acknowledged)],
    ['events stored', ({ events }) => number(events)],
    ['deliveries', ({ deliveries }) => number(deliveries)],
    ['delivered', ({ delivered }) => number(delivered)],
    ['missing', ({ missing }) => number(missing)],
    ['attempts', ({ attempts }) => counts(attempts)],
    ['repeated attempts, by fault', ({ repeated }) => counts(repeated)],
    ['most repeated after one fault', ({ mostRepeated }) => number(mostRepeated)],
    ['repeated without a fault', ({ unexplained }) => number(unexplained)],
    [
      'longest wait of an orphan, no other fault',
      ({ longestUndisturbedOrphanMs }) => seconds(longestUndisturbedOrphanMs),
    ],
    ['longest wait of an orphan', ({ longestOrphanMs }) => seconds(longestOrphanMs)],
    ...RECEIVERS.map((name): [string, (report: Report) => string] => [
      `slowest delivery to the ${name}`,
      ({ slowestDeliveryMs }) => seconds(slowestDeliveryMs[name] ?? 0),
    ]),
    ['last delivery after the end of the load', ({ settledMs }) => seconds(settledMs)],
    ['promises broken', ({ broken }) => number(broken.length)],
  ]
  const messages = reports.flatMap(({ database, broken, logs }) => [
    ...broken.slice(0, MAX_SHOWN).map((promise) => `${database}: ${promise}`),
    ...(broken.length > MAX_SHOWN
      ? [`${database}: and ${broken.length - MAX_SHOWN} more; --json lists them all`]
      : []),
    ...(logs ? [`${database}: the logs are in ${logs}`] : []),
  ])
  const headings = ['', ...reports.map(({ database }) => database)]
  const cells = rows.map(([what, of]) => [what, ...reports.map(of)])
  return [formatTable(headings, cells), ...(messages.length > 0 ? ['', ...messages] : [])].join(
    '\n',
  )
}

function counts(byName: Record<string, number>): string {
  const parts = Object.entries(byName).map(([what, count]) => `${what} ${number(count)}`)
  return parts.join(', ') || 'none'
}

function number(value: number): string {
  return value.toLocaleString('en')
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
