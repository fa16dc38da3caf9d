import { type Command, InvalidArgumentError } from 'commander'
import { validate as isUuid } from 'uuid'
import { Refused } from '../errors.ts'
import { hasAccount } from '../records/accounts.ts'
import {
  type BulkJob,
  type BulkSelection,
  cancelBulkJob,
  findAccountOfBulkJob,
  findBulkJob,
  listBulkJobs,
  pauseBulkJob,
  resumeBulkJob,
} from '../records/bulk-jobs.ts'
import type { Db } from '../records/database/open.ts'
import { accountScope, type WriteScope, writeScope } from '../records/database/scope.ts'
import { transaction } from '../records/database/transaction.ts'
import { MAX_RATE } from '../webhooks/bulk.ts'
import { examples, formatTable, formatTime, type Output, type Shell, WrongUsage } from './shell.ts'

const EXAMPLE_ID = '0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11'

export function addBulk(program: Command, shell: Shell): void {
  const bulk = program
    .command('bulk')
    .description(
      'See, pause and end work at many deliveries: what was missed being sent, failed ones being retried.',
    )

  bulk
    .command('list')
    .summary('list the bulk jobs of an account')
    .description('List the bulk jobs of an account, newest first.')
    .requiredOption('--account <id>', 'the account')
    .addHelpText('after', examples('muster bulk list --account ID'))
    .action(
      shell.action(({ account }: { account: string }) =>
        shell.records(async ({ db }): Promise<Output> => {
          if (!isUuid(account) || !(await hasAccount(db.read, account)))
            throw new Refused(`There is no account ${account}`)
          const jobs = await listBulkJobs(
            accountScope({ dialect: db.dialect, sql: db.read }, account),
          )
          return {
            document: jobs.map(bulkDocumentOf),
            text: jobs.length === 0 ? 'There are no bulk jobs.' : tableOf(jobs),
          }
        }),
      ),
    )

  bulk
    .command('show')
    .summary('see how far a bulk job is')
    .description('See how far a bulk job is.')
    .argument('<id>', 'the bulk job')
    .addHelpText('after', examples(`muster bulk show ${EXAMPLE_ID}`))
    .action(
      shell.action((id: string) =>
        shell.records(async ({ db }): Promise<Output> => {
          const scope = accountScope({ dialect: db.dialect, sql: db.read }, await accountOf(db, id))
          return outputOf(await findBulkJob(scope, id))
        }),
      ),
    )

  const switches = [
    { name: 'pause', verb: 'stop a bulk job until it is resumed', change: pauseBulkJob },
    { name: 'resume', verb: 'go on where a bulk job was paused', change: resumeBulkJob },
    { name: 'cancel', verb: 'end a bulk job', change: cancelBulkJob },
  ] as const
  for (const { name, verb, change } of switches)
    bulk
      .command(name)
      .summary(verb)
      .description(
        `${verb.charAt(0).toUpperCase()}${verb.slice(1)}. What it has put on the schedule stays there. Running servers follow within a second.`,
      )
      .argument('<id>', 'the bulk job')
      .addHelpText('after', examples(`muster bulk ${name} ${EXAMPLE_ID}`))
      .action(shell.action((id: string) => switchJob(shell, id, change)))
}

type JobChange = (scope: WriteScope, id: string, now: Date) => Promise<BulkJob | undefined>

function switchJob(shell: Shell, id: string, change: JobChange): Promise<Output> {
  return shell.records(async ({ db }) => {
    const accountId = await accountOf(db, id)
    return outputOf(
      await transaction(db, (trx) => change(writeScope(trx, accountId), id, new Date())),
    )
  })
}

/** The account of a bulk job. Throws `Refused` when there is no such job. */
async function accountOf(db: Db, id: string): Promise<string> {
  const accountId = isUuid(id) ? await findAccountOfBulkJob(db.read, id) : undefined
  if (accountId === undefined) throw new Refused(`There is no bulk job ${id}`)
  return accountId
}

function outputOf(job: BulkJob | undefined): Output {
  if (!job) throw new Refused('The bulk job is gone')
  return { document: bulkDocumentOf(job), text: tableOf([job]) }
}

export function bulkDocumentOf(job: BulkJob) {
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

function tableOf(jobs: BulkJob[]): string {
  return formatTable(
    ['ID', 'KIND', 'WEBHOOK', 'STATE', 'DONE', 'SKIPPED', 'OF', 'A SECOND', 'STARTED'],
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

/** What a command says of a job that it has started. */
export function sayStarted(job: BulkJob): Output {
  return {
    document: bulkDocumentOf(job),
    text: [
      `Bulk job ${job.id} has begun: ${job.total} to be sent, at most ${job.rate} a second, by a running server.`,
      `See how far it is:  muster bulk show ${job.id}`,
      `Hold it:            muster bulk pause ${job.id}`,
    ].join('\n'),
  }
}

/** And what it says when it only counts. */
export function sayPreview(selection: BulkSelection, count: number): Output {
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
    text: `${count} would be sent, of the time from ${formatTime(since)} to ${formatTime(until)}. Without --preview they are.`,
  }
}

/** For an option that takes a number of deliveries a second. */
export function rateOf(given: string): number {
  if (!/^[1-9]\d{0,2}$/.test(given) || Number(given) > MAX_RATE)
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${MAX_RATE}.`)
  return Number(given)
}

/** For an option that takes a time: a day in UTC, or a moment. */
export function momentOf(given: string): Date {
  const time = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/i.test(given)
    ? Date.parse(given)
    : Number.NaN
  if (Number.isNaN(time))
    throw new InvalidArgumentError(
      'It must be a time such as 2026-11-21T09:30:00Z, or a day such as 2026-11-21.',
    )
  return new Date(time)
}

/** Throws `WrongUsage` for a time that ends before it begins. */
export function assertSpan({ since, until }: { since?: Date; until?: Date }): void {
  if (since && until && since >= until)
    throw new WrongUsage("option '--until <time>' must be later than '--since <time>'")
}
