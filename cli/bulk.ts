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
} from '../records/bulk-jobs.ts'
import type { Db } from '../records/database/open.ts'
import { accountTransaction, readScope, type WriteScope } from '../records/database/scope.ts'
import { DEFAULT_RATE, MAX_RATE, startBulkJob } from '../webhooks/bulk.ts'
import { ACCOUNT_MEANING, lookUpAccount, lookUpBulkJobAccount } from './lookup.ts'
import {
  type CommandDatabase,
  examples,
  formatTable,
  formatTime,
  type Output,
  parseInteger,
  type Shell,
  UsageError,
} from './shell.ts'

export function addCommand(program: Command, shell: Shell): void {
  const bulk = program
    .command('bulk')
    .description(
      'List, pause, resume and cancel bulk jobs: jobs that send missed events or retry failed ' +
        'deliveries in the background.',
    )
  addList(bulk, shell)
  addShow(bulk, shell)
  addChanges(bulk, shell)
}

function addList(bulk: Command, shell: Shell): void {
  bulk
    .command('list')
    .summary('list the bulk jobs of an account')
    .description('List the bulk jobs of an account, newest first.')
    .requiredOption('--account <account>', ACCOUNT_MEANING)
    .addHelpText('after', examples('muster bulk list --account Acme'))
    .action(
      shell.databaseAction(async ({ db }, { account }: { account: string }) => {
        const { id } = await lookUpAccount(db, account)
        const jobs = await listBulkJobs(readScope(db, id))
        return {
          document: jobs.map(toDocument),
          text: jobs.length === 0 ? 'No bulk jobs yet.' : toTable(jobs),
        }
      }),
    )
}

function addShow(bulk: Command, shell: Shell): void {
  bulk
    .command('show')
    .summary('show the progress of a bulk job')
    .description('Show the progress of a bulk job.')
    .argument('<id>', 'the bulk job')
    .addHelpText('after', examples(`muster bulk show ID`))
    .action(
      shell.databaseAction(async ({ db }, id: string) => {
        const scope = readScope(db, await lookUpBulkJobAccount(db, id))
        return toOutput(await findBulkJob(scope, id))
      }),
    )
}

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

function addChanges(bulk: Command, shell: Shell): void {
  for (const { name, summary, description, change } of CHANGES)
    bulk
      .command(name)
      .summary(summary)
      .description(description)
      .argument('<id>', 'the bulk job')
      .addHelpText('after', examples(`muster bulk ${name} ID`))
      .action(shell.databaseAction((database, id: string) => changeJob(database, id, change)))
}

type JobChange = (scope: WriteScope, id: string, now: Date) => Promise<BulkJob | undefined>

async function changeJob(
  { db, now }: CommandDatabase,
  id: string,
  change: JobChange,
): Promise<Output> {
  const accountId = await lookUpBulkJobAccount(db, id)
  return toOutput(await accountTransaction(db, accountId, (scope) => change(scope, id, now())))
}

function toOutput(job: BulkJob | undefined): Output {
  if (!job) throw new Refused('The bulk job no longer exists')
  return { document: toDocument(job), text: toTable([job]) }
}

function toDocument(job: BulkJob) {
  return {
    id: job.id,
    account_id: job.accountId,
    kind: job.kind,
    webhook_id: job.webhookId,
    event_types: job.eventTypes,
    since: formatTime(job.since),
    until: formatTime(job.until),
    rate: job.rate,
    state: job.state,
    state_reason: job.stateReason,
    total: job.total,
    done: job.done,
    skipped: job.skipped,
    created_at: formatTime(job.createdAt),
    updated_at: formatTime(job.updatedAt),
    ended_at: formatTime(job.endedAt),
  }
}

function toTable(jobs: BulkJob[]): string {
  return formatTable(
    ['ID', 'KIND', 'WEBHOOK', 'STATE', 'DONE', 'SKIPPED', 'TOTAL', 'RATE', 'STARTED'],
    jobs.map((job) => [
      job.id,
      job.kind,
      job.webhookId ?? 'all',
      job.stateReason === null ? job.state : `${job.state} (${job.stateReason})`,
      String(job.done),
      String(job.skipped),
      String(job.total),
      String(job.rate),
      formatTime(job.createdAt),
    ]),
  )
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
