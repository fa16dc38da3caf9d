/** Bulk jobs: their list, their pages, and pausing, resuming and cancelling them. */
import {
  type BulkJob,
  type BulkResult,
  countResult,
  countResults,
  findBulkJob,
  listBulkJobs,
  MAX_COUNTED_RESULTS,
  NO_RESULT,
} from '../../../records/bulk-jobs.ts'
import type { DeliveryState } from '../../../records/deliveries.ts'
import { findUser } from '../../../records/users.ts'
import { findWebhook, findWebhookNames } from '../../../records/webhooks.ts'
import { changeJob, type JobCommand } from '../../../webhooks/webhook-changes.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { absoluteTime, count, counted } from '../format.ts'
import { reloadEvery } from '../htmx.ts'
import {
  type ConsolePage,
  canManageWebhooks,
  get,
  getFromStandby,
  isOwnerOrAdmin,
  type PageResult,
  post,
  type Route,
  redirect,
  type Visit,
} from '../page.ts'
import { parseId, toListPage, withQuery } from '../query.ts'
import { readOnlyNote } from '../read-only-note.ts'
import {
  actionForm,
  card,
  code,
  confirmButton,
  copyableId,
  empty,
  facts,
  numberColumn,
  pager,
  pill,
  stats,
  type Tone,
  table,
  timeElement,
  twoLines,
} from '../ui.ts'
import { BULK_KINDS, BULK_STATES, roughDuration } from './bulk-kinds.ts'
import { limitedCount } from './health.ts'

export const bulkJobRoutes: Route[] = [
  getFromStandby('/webhooks/jobs', isOwnerOrAdmin, jobsPage),
  get('/webhooks/jobs/:job', isOwnerOrAdmin, jobPage),
  post('/webhooks/jobs/:job/pause', canManageWebhooks, (visit) => commandJob(visit, 'pause')),
  post('/webhooks/jobs/:job/resume', canManageWebhooks, (visit) => commandJob(visit, 'resume')),
  post('/webhooks/jobs/:job/cancel', canManageWebhooks, (visit) => commandJob(visit, 'cancel')),
]

const JOBS_PER_PAGE = 25
const REFRESH_SECONDS = 1
/** How often to reload the result of a job that has ended, while deliveries wait. */
const REFRESH_RESULT_SECONDS = 5

/** The job in the page's URL. Throws 404 if the account has no such job. */
async function loadJob({ scope, params, ctx }: Visit): Promise<BulkJob> {
  return (await findBulkJob(scope, params.job ?? '')) ?? ctx.throw(404)
}

async function jobsPage(visit: Visit): Promise<ConsolePage> {
  const { scope, query, user, now } = visit
  const olderThan = parseId(query.get('before'))
  const found = await listBulkJobs(scope, { beforeId: olderThan, limit: JOBS_PER_PAGE + 1 })
  const { items: jobs, hasNewer, hasOlder } = toListPage(found, JOBS_PER_PAGE, { olderThan })
  const webhookIds = jobs.flatMap(({ webhookId }) => webhookId ?? [])
  const [names, results] = await Promise.all([
    findWebhookNames(scope, webhookIds),
    countResults(
      scope,
      jobs.map(({ id }) => id),
      MAX_COUNTED_RESULTS,
    ),
  ])
  return {
    title: 'Bulk jobs',
    lead: 'Jobs that retry deliveries or send missed events in the background, and what became of them.',
    crumbs: [{ label: 'Webhooks', to: '/webhooks' }],
    body: [
      !canManageWebhooks(user) && (await readOnlyNote(visit, 'webhooks')),
      card('', [
        jobs.length === 0 ? noJobs : jobsTable(jobs, { names, results, now }),
        pager({
          previous: hasNewer ? '/webhooks/jobs' : undefined,
          next: hasOlder ? `/webhooks/jobs?before=${jobs.at(-1)?.id}` : undefined,
        }),
      ]),
    ],
  }
}

const noJobs = empty(
  'No bulk jobs yet',
  'Open a webhook to send missed events or retry failed deliveries. The jobs appear here.',
)

interface JobsContext {
  /** By the ID of the webhook. */
  names: Map<string, string>
  /** By the ID of the job. */
  results: Map<string, BulkResult>
  now: Date
}

function jobsTable(jobs: BulkJob[], { names, results, now }: JobsContext): Html {
  const rows = jobs.map((job) => {
    const { id, kind, webhookId, state, done, total, createdAt } = job
    const result = results.get(id) ?? NO_RESULT
    return {
      id: `job-${id}`,
      cells: [
        html`<a href="/console/webhooks/jobs/${id}">${BULK_KINDS[kind].title}</a>`,
        webhookId === null ? 'All' : html`<bdi class="clipped">${names.get(webhookId)}</bdi>`,
        pill(BULK_STATES[state].tone, BULK_STATES[state].label),
        twoLines(`${count(done)} of ${count(total)}`, laterText(job, result), 'at-end'),
        resultCount(result.delivered),
        resultCount(result.failed, 'bad'),
        resultCount(result.waiting),
        html`<span class="nowrap">${timeElement(createdAt, now)}</span>`,
      ],
    }
  })
  return table('Bulk jobs', COLUMNS, rows)
}

const COLUMNS = [
  'Job',
  'Webhook',
  'State',
  ...['Done', 'Delivered', 'Failed', 'Waiting'].map(numberColumn),
  'Started',
]

function resultCount(value: number, tone: Tone = 'quiet'): Content {
  const text = limitedCount(value, MAX_COUNTED_RESULTS)
  return html`<span class="${value === 0 ? 'muted' : `tone ${tone}`}">${text}</span>`
}

async function jobPage(visit: Visit): Promise<ConsolePage> {
  const { scope, user, now } = visit
  const job = await loadJob(visit)
  const isRunning = job.state === 'running'
  // To count a million deliveries every second would be a load.
  const result = isRunning ? undefined : await countResult(scope, job.id)
  const path = `/console/webhooks/jobs/${job.id}`
  const seconds = isRunning ? REFRESH_SECONDS : REFRESH_RESULT_SECONDS
  const isLive = isRunning || (result !== undefined && result.waiting > 0)
  const reload = isLive && reloadEvery(seconds, path, 'job')
  const progress = jobProgress(job, { now, canManage: canManageWebhooks(user) })
  return {
    title: BULK_KINDS[job.kind].title,
    crumbs: [
      { label: 'Webhooks', to: '/webhooks' },
      { label: 'Bulk jobs', to: '/webhooks/jobs' },
    ],
    isNarrow: true,
    body: [
      html`<div id="job"${reload}>
        ${card('', progress)}
        ${result && job.done > 0 && jobResult(job, result)}
      </div>`,
      card('', await jobFacts(visit, job)),
    ],
  }
}

/** False if the result has all deliveries of the job, or if its counts stopped. */
function laterText({ done }: BulkJob, { delivered, failed, waiting }: BulkResult): Content {
  if (Math.max(delivered, failed, waiting) >= MAX_COUNTED_RESULTS) return false
  const later = done - delivered - failed - waiting
  return later > 0 && `${count(later)} retried again or deleted`
}

function jobResult({ id, webhookId, done }: BulkJob, result: BulkResult): Html {
  const { delivered, failed, waiting } = result
  const others = done - delivered - failed - waiting
  const listPath = (state: DeliveryState): string =>
    withQuery(`/webhooks/${webhookId}`, { job: id, state })
  const show = (state: DeliveryState): Content =>
    webhookId !== null && html`<a href="/console${listPath(state)}">Show</a>`
  return html`
    ${stats([
      { label: 'Delivered', value: count(delivered), note: delivered > 0 && show('delivered') },
      { label: 'Failed', value: count(failed), note: failed > 0 && show('failed') },
      { label: 'Waiting', value: count(waiting), note: waiting > 0 && show('retrying') },
    ])}
    ${
      others > 0 &&
      html`<p class="muted">
      ${counted(others, 'delivery', 'deliveries')} retried again by a later job, or deleted.
    </p>`
    }`
}

async function jobFacts(visit: Visit, job: BulkJob): Promise<Html> {
  const { scope, now } = visit
  const { id, kind, webhookId, eventTypes, since, until, rate, createdBy, createdAt, endedAt } = job
  const creator = createdBy === null ? undefined : await findUser(scope, createdBy)
  return facts([
    ['Webhook', webhookId === null ? 'All webhooks' : await webhookLink(visit, webhookId)],
    [
      'Events',
      eventTypes === null ? 'All' : html`<span class="event-chips">${eventTypes.map(code)}</span>`,
    ],
    kind !== 'retry_waiting' && ['Period', `${absoluteTime(since)} to ${absoluteTime(until)}`],
    ['Rate', `At most ${rate} per second`],
    ['Started', html`${timeElement(createdAt, now)} by ${creator?.fullName ?? 'the CLI'}`],
    endedAt !== null && ['Ended', timeElement(endedAt, now)],
    ['ID', copyableId(id)],
  ])
}

/** A link to the webhook. If the webhook was deleted, only its name. */
async function webhookLink({ scope }: Visit, webhookId: string): Promise<Html> {
  const names = await findWebhookNames(scope, [webhookId])
  const name = html`<bdi>${names.get(webhookId)}</bdi>`
  return (await findWebhook(scope, webhookId))
    ? html`<a href="/console/webhooks/${webhookId}">${name}</a>`
    : name
}

const STATE_REASONS: Record<NonNullable<BulkJob['stateReason']>, string> = {
  webhook_disabled: 'The webhook was disabled.',
  webhook_deleted: 'The webhook was deleted.',
}

interface ProgressOptions {
  now: Date
  canManage: boolean
  /** With a title that links to the job's page. */
  isLink?: boolean
}

export function jobProgress(job: BulkJob, { now, canManage, isLink }: ProgressOptions): Html {
  const { id, kind, state, stateReason, total, done, skipped, rate, createdAt } = job
  const isActive = state === 'running' || state === 'paused'
  const title = isActive ? BULK_KINDS[kind].inProgress : BULK_KINDS[kind].title
  const left = Math.max(0, total - done - skipped)
  const max = Math.max(1, total)
  const value = Math.min(done + skipped, max)
  const progress = [
    `${count(done)} of ${count(total)}`,
    skipped > 0 && `, ${count(skipped)} skipped (no longer needed)`,
    state === 'running' && left > 0 && `, about ${roughDuration(left / rate)} left`,
  ]
  return html`<div class="job card-body">
    <div class="job-head">
      ${isLink && html`<h2><a href="/console/webhooks/jobs/${id}">${title}</a></h2>`}
      ${pill(BULK_STATES[state].tone, BULK_STATES[state].label)}
      ${canManage && isActive && jobButtons(job)}
    </div>
    <progress max="${max}" value="${value}" aria-label="${title}"></progress>
    <p class="muted">
      ${progress}${isLink && html` · started ${timeElement(createdAt, now)}`}
      ${stateReason !== null && html`<br>${STATE_REASONS[stateReason]}`}
    </p>
  </div>`
}

function jobButtons({ id, state }: BulkJob): Html {
  const to = `/webhooks/jobs/${id}`
  const pauseButton = actionForm({ to: `${to}/pause`, label: 'Pause' })
  const resumeButton = actionForm({ to: `${to}/resume`, label: 'Resume' })
  return html`<span class="actions">
    ${state === 'running' ? pauseButton : resumeButton}
    ${confirmButton('Cancel', {
      title: 'Cancel this job?',
      text: 'No more deliveries are added. Attempts that are already scheduled are still made.',
      openStyle: 'quiet',
      body: actionForm({ to: `${to}/cancel`, label: 'Cancel job', style: 'danger' }),
    })}
  </span>`
}

const NOTICES: Record<JobCommand, string> = {
  pause: 'Job paused. Attempts that are already scheduled are still made.',
  resume: 'Job resumed.',
  cancel: 'Job cancelled.',
}

async function commandJob(visit: Visit, command: JobCommand): Promise<PageResult> {
  const job = await loadJob(visit)
  await visit.change(
    async (scope) => (await changeJob({ ...visit, scope }, job, command)) ?? visit.ctx.throw(404),
  )
  return redirect(`/webhooks/jobs/${job.id}`, NOTICES[command])
}
