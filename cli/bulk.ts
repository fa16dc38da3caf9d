import { type Command, InvalidArgumentError } from 'commander'
import { Refused } from '../errors.ts'
import { countSelected } from '../records/bulk-batches.ts'
import {
  type BulkJob,
  type BulkSelection,
  cancelBulkJob,
  findBulkJob,
  listBulkJobs,
  pauseBulkJob,
  resumeBulkJob,
  toPublicBulkJob,
} from '../records/bulk-jobs.ts'
import type { Db } from '../records/database/open.ts'
import { accountTransaction, readScope } from '../records/database/scope.ts'
import { DEFAULT_RATE, MAX_RATE, startBulkJob } from '../webhooks/bulk.ts'
import { type Columns, commandGroup, databaseCommand, listOutput, toTable } from './commands.ts'
import { ACCOUNT_MEANING, lookUpAccount, lookUpBulkJobAccount } from './lookup.ts'
import { formatTime, type Output, parseInteger, UsageError } from './shell.ts'

const list = databaseCommand({
  name: 'list',
  summary: 'list the bulk jobs of an account',
  description: 'List the bulk jobs of an account, newest first.',
  declare: (command) => command.requiredOption('--account <account>', ACCOUNT_MEANING),
  examples: ['muster bulk list --account Acme'],
  async run({ db }, { account }: { account: string }) {
    const { id } = await lookUpAccount(db, account)
    const jobs = await listBulkJobs(readScope(db, id))
    return listOutput(jobs, { toDocument, columns: COLUMNS, none: 'No bulk jobs yet.' })
  },
})

const show = databaseCommand({
  name: 'show',
  summary: 'show the progress of a bulk job',
  description: 'Show the progress of a bulk job.',
  declare: (command) => command.argument('<id>', 'the bulk job'),
  examples: ['muster bulk show ID'],
  async run({ db }, id: string) {
    const scope = readScope(db, await lookUpBulkJobAccount(db, id))
    return toOutput(await findBulkJob(scope, id))
  },
})

const CHANGES = [
  {
    name: 'pause',
    summary: 'pause a bulk job',
    description:
      'Pause a bulk job. It stops within a second. Attempts that it has already scheduled are still made.',
    change: pauseBulkJob,
  },
  {
    name: 'resume',
    summary: 'resume a paused bulk job',
    description: 'Resume a paused bulk job. A running worker continues it within a second.',
    change: resumeBulkJob,
  },
  {
    name: 'cancel',
    summary: 'cancel a bulk job for good',
    description:
      'Cancel a bulk job for good. It stops within a second. Attempts that it has already scheduled are ' +
      'still made.',
    change: cancelBulkJob,
  },
] as const

const changes = CHANGES.map(({ name, summary, description, change }) =>
  databaseCommand({
    name,
    summary,
    description,
    declare: (command) => command.argument('<id>', 'the bulk job'),
    examples: [`muster bulk ${name} ID`],
    async run({ db, now }, id: string) {
      const accountId = await lookUpBulkJobAccount(db, id)
      return toOutput(await accountTransaction(db, accountId, (scope) => change(scope, id, now())))
    },
  }),
)

export const addCommand = commandGroup(
  'bulk',
  'List, pause, resume and cancel bulk jobs: jobs that send missed events or retry failed ' +
    'deliveries in the background.',
  [list, show, ...changes],
)

function toOutput(job: BulkJob | undefined): Output {
  if (!job) throw new Refused('The bulk job no longer exists')
  return { document: toDocument(job), text: toTable([job], COLUMNS) }
}

function toDocument(job: BulkJob) {
  const { id, ...document } = toPublicBulkJob(job)
  return { id, account_id: job.accountId, ...document }
}

const COLUMNS: Columns<BulkJob> = {
  ID: ({ id }) => id,
  KIND: ({ kind }) => kind,
  WEBHOOK: ({ webhookId }) => webhookId ?? 'all',
  STATE: ({ state, stateReason }) => (stateReason === null ? state : `${state} (${stateReason})`),
  DONE: ({ done }) => done,
  SKIPPED: ({ skipped }) => skipped,
  TOTAL: ({ total }) => total,
  RATE: ({ rate }) => rate,
  STARTED: ({ createdAt }) => formatTime(createdAt),
}

function formatStarted(job: BulkJob): Output {
  return {
    document: toDocument(job),
    text: [
      `Started bulk job ${job.id}. A running worker sends ${job.total} deliveries, ` +
        `at most ${job.rate} per second.`,
      `See its progress:  muster bulk show ${job.id}`,
      `Pause it:          muster bulk pause ${job.id}`,
    ].join('\n'),
  }
}

function formatPreview(selection: BulkSelection, count: number): Output {
  const { kind, webhookId, eventTypes, since, until } = selection
  return {
    document: {
      kind,
      webhook_id: webhookId,
      event_types: eventTypes,
      since: formatTime(since),
      until: formatTime(until),
      count,
    },
    text:
      `Matches ${count} deliveries from ${formatTime(since)} to ${formatTime(until)}. ` +
      'Run this without --preview to send them.',
  }
}

export interface BulkOptions {
  until?: Date
  rate: number
  preview?: boolean
}

/** Adds the options of every command that starts a bulk job. Each command adds `--since` itself:
 *  retry-failed requires it, send-missed has a default. */
export function addBulkOptions(command: Command): Command {
  return command
    .option('--until <time>', 'end of the period (default: now)', parseTime)
    .option(
      '--rate <n>',
      `maximum deliveries per second, up to ${MAX_RATE}`,
      parseInteger(1, MAX_RATE),
      DEFAULT_RATE,
    )
    .option('--preview', 'only count the deliveries')
}

export async function startOrPreview(
  { db, accountId, now }: { db: Db; accountId: string; now: () => Date },
  selection: BulkSelection,
  { rate, preview }: BulkOptions,
): Promise<Output> {
  if (preview)
    return formatPreview(selection, await countSelected(readScope(db, accountId), selection))
  return formatStarted(
    await startBulkJob(db, accountId, { selection, rate, createdBy: null }, now()),
  )
}

/** A day, or a time with its offset from UTC. Seconds may be missing. */
const DAY_OR_TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/i

/** Parses a time, or a day. A day means its start in UTC. */
export function parseTime(text: string): Date {
  const time = DAY_OR_TIME.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(time) || !isRealDay(text.slice(0, 10)))
    throw new InvalidArgumentError(
      'Use a time or a day, for example 2026-11-21T09:30:00Z or 2026-11-21.',
    )
  return new Date(time)
}

/** `Date.parse` reads 30 February as 2 March. */
function isRealDay(day: string): boolean {
  return new Date(day).toISOString().startsWith(day)
}

/** Throws `UsageError` if both times are set and the period does not end after its start. */
export function assertPeriod({ since, until }: { since?: Date; until?: Date }): void {
  if (since && until && since >= until)
    throw new UsageError("option '--until <time>' must be later than '--since <time>'")
}
