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
import { accountTransaction, readScope, type Scope } from '../records/database/scope.ts'
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
    const scope = readScope(db, id)
    const jobs: JobDocument[] = []
    for (const job of await listBulkJobs(scope)) jobs.push(await toDocument(scope, job))
    return listOutput(jobs, {
      toDocument: (job) => job,
      columns: COLUMNS,
      none: 'No bulk jobs yet.',
    })
  },
})

const show = databaseCommand({
  name: 'show',
  summary: 'show the progress and the result of a bulk job',
  description:
    'Show the progress of a bulk job, and how many of its deliveries are delivered, have failed and ' +
    'are waiting now.',
  declare: (command) => command.argument('<id>', 'the bulk job'),
  examples: ['muster bulk show ID'],
  async run({ db }, id: string) {
    const scope = readScope(db, await lookUpBulkJobAccount(db, id))
    return toOutput(scope, await findBulkJob(scope, id))
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
      const job = await accountTransaction(db, accountId, (scope) => change(scope, id, now()))
      return toOutput(readScope(db, accountId), job)
    },
  }),
)

export const addCommand = commandGroup(
  'bulk',
  'List, pause, resume and cancel bulk jobs: jobs that send missed events, or retry failed or ' +
    'waiting deliveries, in the background.',
  [list, show, ...changes],
)

async function toOutput(scope: Scope, job: BulkJob | undefined): Promise<Output> {
  if (!job) throw new Refused('The bulk job no longer exists')
  const document = await toDocument(scope, job)
  return { document, text: toTable([document], COLUMNS) }
}

type JobDocument = Awaited<ReturnType<typeof toDocument>>

async function toDocument(scope: Scope, job: BulkJob) {
  const { id, ...document } = await toPublicBulkJob(scope, job)
  return { id, account_id: job.accountId, ...document }
}

const COLUMNS: Columns<JobDocument> = {
  ID: ({ id }) => id,
  KIND: ({ kind }) => kind,
  WEBHOOK: ({ webhook_id }) => webhook_id ?? 'all',
  STATE: ({ state, state_reason }) =>
    state_reason === null ? state : `${state} (${state_reason})`,
  DONE: ({ done }) => done,
  SKIPPED: ({ skipped }) => skipped,
  TOTAL: ({ total }) => total,
  DELIVERED: ({ delivered }) => delivered,
  FAILED: ({ failed }) => failed,
  WAITING: ({ waiting }) => waiting,
  RATE: ({ rate }) => rate,
  STARTED: ({ created_at }) => created_at,
}

async function formatStarted(scope: Scope, job: BulkJob): Promise<Output> {
  return {
    document: await toDocument(scope, job),
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
  const which =
    kind === 'retry_waiting'
      ? 'that are retrying'
      : `from ${formatTime(since)} to ${formatTime(until)}`
  return {
    document: {
      kind,
      webhook_id: webhookId,
      event_types: eventTypes,
      since: formatTime(since),
      until: formatTime(until),
      count,
    },
    text: `Matches ${count} deliveries ${which}. Run this without --preview to send them.`,
  }
}

export interface BulkOptions {
  rate: number
  preview?: boolean
}

/** Adds the end of the period of a bulk job. Each command adds `--since` itself: retry-failed
 *  requires it, send-missed has a default. */
export function addUntilOption(command: Command): Command {
  return command.option('--until <time>', 'end of the period (default: now)', parseTime)
}

/** Adds the options of every command that starts a bulk job. */
export function addBulkOptions(command: Command): Command {
  return command
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
  const scope = readScope(db, accountId)
  if (preview) return formatPreview(selection, await countSelected(scope, selection))
  const job = await startBulkJob(db, accountId, { selection, rate, createdBy: null }, now())
  return formatStarted(scope, job)
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
