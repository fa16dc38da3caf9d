/** Work at many deliveries: what was missed is sent, what failed is retried. It is counted first, and then seen and steered. */
import { validate as isUuid } from 'uuid'
import { Refused } from '../../../errors.ts'
import type { AuditTarget } from '../../../records/audit-log.ts'
import { countSelected } from '../../../records/bulk-batches.ts'
import {
  type BulkJob,
  type BulkKind,
  type BulkSelection,
  type BulkState,
  cancelBulkJob,
  findBulkJob,
  insertBulkJob,
  listBulkJobs,
  pauseBulkJob,
  resumeBulkJob,
} from '../../../records/bulk-jobs.ts'
import type { WriteScope } from '../../../records/database/scope.ts'
import { findUser } from '../../../records/users.ts'
import { findWebhook, findWebhookNames, type Webhook } from '../../../records/webhooks.ts'
import { DEFAULT_RATE, failedIn, MAX_RATE, missedBy } from '../../../webhooks/bulk.ts'
import {
  DATE_TIME_ERROR,
  parseDateTimeInput,
  toDateTimeInput,
} from '../../shared/date-time-input.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { type Answer, get, isAdmin, type Page, post, type Route, type Visit } from '../page.ts'
import { readOnlyNote } from '../read-only-note.ts'
import {
  action,
  buttonLink,
  card,
  code,
  confirmed,
  count,
  counted,
  type Errors,
  empty,
  facts,
  idOf,
  note,
  POLL,
  pager,
  pill,
  selectField,
  type Tone,
  table,
  textField,
  timeOf,
  utc,
} from '../ui.ts'
import { loggedTypes } from './delivery-log.ts'
import { crumbsOf, mayManage, targetOf, webhookOf } from './webhook-access.ts'

export const bulkJobRoutes: Route[] = [
  get('/webhooks/jobs', isAdmin, jobsPage),
  get('/webhooks/jobs/:job', isAdmin, jobPage),
  post('/webhooks/jobs/:job/pause', mayManage, (visit) => steer(visit, PAUSE)),
  post('/webhooks/jobs/:job/resume', mayManage, (visit) => steer(visit, RESUME)),
  post('/webhooks/jobs/:job/cancel', mayManage, (visit) => steer(visit, CANCEL)),
  get('/webhooks/:webhook/send-missed', mayManage, (visit) =>
    previewPage(visit, 'send_missed', visit.query),
  ),
  post('/webhooks/:webhook/send-missed', mayManage, (visit) => start(visit, 'send_missed')),
  get('/webhooks/:webhook/retry-failed', mayManage, (visit) =>
    previewPage(visit, 'retry_failed', visit.query),
  ),
  post('/webhooks/:webhook/retry-failed', mayManage, (visit) => start(visit, 'retry_failed')),
]

const KINDS: Record<
  BulkKind,
  { path: string; title: string; lead: string; none: string; doing: string; action: string }
> = {
  send_missed: {
    path: 'send-missed',
    title: 'Send what was missed',
    lead: 'Events that the webhook is subscribed to and has not got, and deliveries that ended when it was disabled. Each has the whole schedule of attempts.',
    none: 'It has missed nothing in this time.',
    doing: 'Sending what was missed',
    action: 'send_missed_started',
  },
  retry_failed: {
    path: 'retry-failed',
    title: 'Retry what failed',
    lead: 'One more attempt for each delivery that failed in this time. Tests do not count.',
    none: 'Nothing has failed in this time.',
    doing: 'Retrying what failed',
    action: 'retry_failed_started',
  },
}

const STATES: Record<BulkState, { label: string; tone: Tone }> = {
  running: { label: 'Running', tone: 'busy' },
  paused: { label: 'Paused', tone: 'warn' },
  completed: { label: 'Completed', tone: 'ok' },
  cancelled: { label: 'Cancelled', tone: 'quiet' },
}

const DAY_MS = 86_400_000
const JOBS_PER_PAGE = 25

/** What somebody wants to be done, and at what rate; or what is wrong with it. */
interface Wanted {
  selection?: BulkSelection
  rate: number
  /** As it was typed, or what it is when nothing was. */
  given: Record<'since' | 'until' | 'type' | 'rate', string>
  errors: Errors
}

function wantedOf(webhook: Webhook, kind: BulkKind, typed: URLSearchParams, now: Date): Wanted {
  const given = {
    since:
      typed.get('since')?.trim() ??
      (kind === 'retry_failed' ? toDateTimeInput(now.getTime() - DAY_MS) : ''),
    until: typed.get('until')?.trim() ?? '',
    type: typed.get('type') ?? '',
    rate: typed.get('rate')?.trim() || String(DEFAULT_RATE),
  }
  const errors: Errors = {}
  const [since, until] = [
    parseDateTimeInput(given.since ?? ''),
    parseDateTimeInput(given.until ?? ''),
  ]
  const canLeaveOutSince = kind === 'send_missed' && webhook.disabledAt !== null
  if (since === undefined && !(canLeaveOutSince && given.since === ''))
    errors.since = [DATE_TIME_ERROR]
  if (given.until !== '' && until === undefined) errors.until = [DATE_TIME_ERROR]
  if (since !== undefined && until !== undefined && since >= until)
    errors.until = ['This is not after “From”.']
  const isRate = /^[1-9]\d{0,3}$/.test(given.rate) && Number(given.rate) <= MAX_RATE
  if (!isRate) errors.rate = [`Give a whole number from 1 to ${MAX_RATE}.`]
  if (given.type !== '' && !loggedTypes.includes(given.type))
    errors.type = ['There is no such event.']
  if (Object.keys(errors).length > 0) return { rate: 0, given, errors }

  const span = {
    since: since === undefined ? undefined : new Date(since),
    until: until === undefined ? undefined : new Date(until),
  }
  const types = given.type === '' ? null : [given.type]
  const selection =
    kind === 'send_missed'
      ? missedBy(webhook, span, now)
      : failedIn(
          webhook.id,
          types,
          { ...span, since: span.since ?? new Date(now.getTime() - DAY_MS) },
          now,
        )
  return { selection, rate: Number(given.rate), given, errors }
}

/** A form of which the number is shown, of what is chosen, before anything is done. */
async function previewPage(
  visit: Visit,
  kind: BulkKind,
  typed: URLSearchParams,
  problem?: string,
): Promise<Page> {
  const webhook = await webhookOf(visit)
  const wanted = wantedOf(webhook, kind, typed, visit.now)
  const { given, errors } = wanted
  const { path, title, lead } = KINDS[kind]
  const to = `/console/webhooks/${webhook.id}/${path}`
  // Nothing was asked yet, and so nothing is wrong.
  const isBlank = typed.size === 0
  const shown = isBlank ? {} : errors
  return {
    title,
    lead,
    crumbs: crumbsOf(webhook),
    // What comes in place of a piece is no error to htmx, or it would not be shown.
    status:
      (problem !== undefined || Object.keys(shown).length > 0) && visit.ctx.get('HX-Request') === ''
        ? 422
        : 200,
    isNarrow: true,
    body: html`${!webhook.enabled && note('warn', 'The webhook is disabled. Enable it first.')}${card(
      '',
      [
        html`<form class="form" method="get" action="${to}" novalidate hx-get="${to}" hx-trigger="change" hx-target="#preview" hx-select="#preview" hx-swap="outerHTML ignoreTitle:true">${problem !== undefined && note('bad', problem)}${timeFields(webhook, kind, given, shown)}${
          kind === 'retry_failed' &&
          selectField({
            name: 'type',
            label: 'Event',
            none: 'All',
            value: given.type,
            choices: loggedTypes.map((type) => ({ value: type, label: type })),
            errors: shown,
          })
        }${textField({
          name: 'rate',
          label: 'At most so many a second',
          hint: 'So that your receiver has room for what happens meanwhile.',
          type: 'number',
          value: given.rate,
          isRequired: true,
          errors: shown,
        })}<div id="preview" aria-live="polite">${await preview(visit, kind, wanted, isBlank)}</div><div class="form-actions"><button class="button primary" formmethod="post">Start</button><button class="button">Count</button>${buttonLink(`/webhooks/${webhook.id}`, 'Cancel', 'quiet')}</div></form>`,
      ],
    )}`,
  }
}

function timeFields(
  { disabledAt }: Webhook,
  kind: BulkKind,
  given: Wanted['given'],
  errors: Errors,
): Content {
  const isOptional = kind === 'send_missed' && disabledAt !== null
  return html`<div class="two-fields">${textField({
    name: 'since',
    label: 'From (UTC)',
    hint: isOptional
      ? `Left empty: since it was disabled, ${utc(disabledAt).slice(0, 16)}.`
      : undefined,
    type: 'datetime-local',
    value: given.since,
    isRequired: !isOptional,
    errors,
  })}${textField({ name: 'until', label: 'Until (UTC)', hint: isOptional ? 'Left empty: until now.' : undefined, type: 'datetime-local', value: given.until, errors })}</div>`
}

async function preview(
  { scope }: Visit,
  kind: BulkKind,
  { selection, rate, errors }: Wanted,
  isBlank: boolean,
): Promise<Content> {
  const [wrong] = Object.values(errors)
  if (!selection)
    return html`<p class="muted">${isBlank ? 'How many there are is counted when the time is given.' : wrong?.join(' ')}</p>`
  const total = await countSelected(scope, selection)
  if (total === 0) return note('quiet', KINDS[kind].none)
  return note(
    'busy',
    html`<strong>${counted(total, 'delivery', 'deliveries')}</strong>, which takes about ${lastsOf(total / rate)}.`,
  )
}

/** `a second`, `5 minutes`. */
function lastsOf(seconds: number): string {
  if (seconds < 60) return counted(Math.max(1, Math.ceil(seconds)), 'second')
  return seconds < 3_600
    ? counted(Math.ceil(seconds / 60), 'minute')
    : counted(Math.ceil(seconds / 3_600), 'hour')
}

async function start(visit: Visit, kind: BulkKind): Promise<Answer> {
  const webhook = await webhookOf(visit)
  const { selection, rate, errors } = wantedOf(webhook, kind, visit.form, visit.now)
  if (!selection || Object.keys(errors).length > 0) return previewPage(visit, kind, visit.form)
  const total = await countSelected(visit.scope, selection)
  if (total === 0) return previewPage(visit, kind, visit.form, KINDS[kind].none)
  try {
    const job = await visit.change(async (scope) => {
      const started = await insertBulkJob(
        scope,
        { selection, rate, total, createdBy: visit.user.id },
        visit.now,
      )
      await visit.audit(scope, {
        action: `webhook.${KINDS[kind].action}`,
        target: targetOf(webhook),
        details: { bulk_job_id: started.id, total, rate },
      })
      return started
    })
    return {
      to: `/webhooks/jobs/${job.id}`,
      notice: { kind: 'ok', text: `${KINDS[kind].doing} has begun.` },
    }
  } catch (error) {
    if (error instanceof Refused) return previewPage(visit, kind, visit.form, error.message)
    throw error
  }
}

async function jobOf({ scope, params, ctx }: Visit): Promise<BulkJob> {
  return (await findBulkJob(scope, params.job?.toLowerCase() ?? '')) ?? ctx.throw(404)
}

async function jobsPage(visit: Visit): Promise<Page> {
  const { scope, query, user, now } = visit
  const before = query.get('before')
  const beforeId = before !== null && isUuid(before) ? before.toLowerCase() : undefined
  const found = await listBulkJobs(scope, { beforeId, limit: JOBS_PER_PAGE + 1 })
  const jobs = found.slice(0, JOBS_PER_PAGE)
  const names = await findWebhookNames(
    scope,
    jobs.flatMap(({ webhookId }) => webhookId ?? []),
  )
  return {
    title: 'Bulk jobs',
    lead: 'Work at many deliveries, done in the background.',
    crumbs: [{ label: 'Webhooks', to: '/webhooks' }],
    body: html`${!mayManage(user, {}) && (await readOnlyNote(visit, 'webhooks'))}${card('', [
      jobs.length === 0
        ? empty(
            'No bulk jobs yet',
            'After an outage, a webhook’s page offers to send what was missed and to retry what failed. What comes of it is seen here.',
          )
        : table(
            ['What', 'Webhook', 'State', { label: 'Done', isNumber: true }, 'Started'],
            jobs.map((job) => ({
              id: `job-${job.id}`,
              cells: [
                html`<a href="/console/webhooks/jobs/${job.id}">${KINDS[job.kind].title}</a>`,
                job.webhookId === null
                  ? 'All'
                  : html`<bdi class="clipped">${names.get(job.webhookId)}</bdi>`,
                pill(STATES[job.state].tone, STATES[job.state].label),
                `${count(job.done)} of ${count(job.total)}`,
                timeOf(job.createdAt, now),
              ],
            })),
            { label: 'Bulk jobs' },
          ),
      pager({
        previous: beforeId === undefined ? undefined : '/webhooks/jobs',
        next: found.length > jobs.length ? `/webhooks/jobs?before=${jobs.at(-1)?.id}` : undefined,
      }),
    ])}`,
  }
}

const REFRESH_SECONDS = 1

async function jobPage(visit: Visit): Promise<Page> {
  const { scope, user, now } = visit
  const job = await jobOf(visit)
  const {
    id,
    kind,
    webhookId,
    eventTypes,
    since,
    until,
    rate,
    createdBy,
    createdAt,
    endedAt,
    state,
  } = job
  const starter = createdBy === null ? undefined : await findUser(scope, createdBy)
  const address = `/console/webhooks/jobs/${id}`
  const refresh =
    state === 'running' &&
    html` hx-get="${address}" hx-trigger="every ${REFRESH_SECONDS}s" hx-target="#job" hx-select="#job" hx-swap="outerMorph ignoreTitle:true"${POLL}`
  return {
    title: KINDS[kind].title,
    crumbs: [
      { label: 'Webhooks', to: '/webhooks' },
      { label: 'Bulk jobs', to: '/webhooks/jobs' },
    ],
    isNarrow: true,
    body: [
      html`<div id="job"${refresh}>${card('', jobProgress(job, { now, canManage: mayManage(user, {}) }))}</div>`,
      card(
        '',
        facts([
          ['Webhook', webhookId === null ? 'All of the account' : await linkTo(visit, webhookId)],
          [
            'Events',
            eventTypes === null
              ? 'All'
              : html`<span class="event-chips">${eventTypes.map(code)}</span>`,
          ],
          ['Of the time', `${utc(since)} to ${utc(until)}`],
          ['Rate', `At most ${rate} a second`],
          [
            'Started',
            html`${timeOf(createdAt, now)} by ${starter?.fullName ?? 'the command line'}`,
          ],
          ...(endedAt === null ? [] : [['Ended', timeOf(endedAt, now)] as [string, Content]]),
          ['Id', idOf(id)],
        ]),
      ),
    ],
  }
}

/** It may have been deleted since. */
async function linkTo({ scope }: Visit, webhookId: string): Promise<Html> {
  const name = html`<bdi>${(await findWebhookNames(scope, [webhookId])).get(webhookId)}</bdi>`
  return (await findWebhook(scope, webhookId))
    ? html`<a href="/console/webhooks/${webhookId}">${name}</a>`
    : name
}

const STATE_REASONS: Record<NonNullable<BulkJob['stateReason']>, string> = {
  webhook_disabled: 'The webhook was disabled.',
  webhook_deleted: 'The webhook was deleted.',
}

/** How far it is, with its buttons. */
export function jobProgress(
  job: BulkJob,
  { now, canManage, isLink }: { now: Date; canManage: boolean; isLink?: boolean },
): Html {
  const { id, kind, state, stateReason, total, done, skipped, rate, createdAt } = job
  const title = state === 'running' || state === 'paused' ? KINDS[kind].doing : KINDS[kind].title
  const left = Math.max(0, total - done - skipped)
  return html`<div class="job card-body"><div class="job-head"><h2>${isLink ? html`<a href="/console/webhooks/jobs/${id}">${title}</a>` : title}</h2>${pill(STATES[state].tone, STATES[state].label)}${canManage && steering(job)}</div><progress max="${Math.max(1, total)}" value="${Math.min(done + skipped, Math.max(1, total))}" aria-label="${title}"></progress><p class="muted">${count(done)} of ${count(total)}${skipped > 0 && `, ${count(skipped)} had no need of it any more`}${
    state === 'running' && left > 0 && `, about ${lastsOf(left / rate)} left`
  } · started ${timeOf(createdAt, now)}${stateReason !== null && html`<br>${STATE_REASONS[stateReason]}`}</p></div>`
}

function steering({ id, state }: BulkJob): Content {
  const to = `/webhooks/jobs/${id}`
  if (state !== 'running' && state !== 'paused') return false
  return html`<span class="actions">${
    state === 'running'
      ? action({ to: `${to}/pause`, label: 'Pause' })
      : action({ to: `${to}/resume`, label: 'Resume' })
  }${confirmed('Cancel', {
    title: 'Cancel this job?',
    text: 'It ends here. What it has sent stays sent, and what is on the schedule stays there.',
    style: 'quiet',
    body: action({ to: `${to}/cancel`, label: 'Cancel the job', style: 'danger' }),
  })}</span>`
}

interface Steer {
  change: (scope: WriteScope, id: string, now: Date) => Promise<BulkJob | undefined>
  name: string
  said: string
}

const PAUSE: Steer = {
  change: pauseBulkJob,
  name: 'bulk_job_paused',
  said: 'The job is paused. What it has put on the schedule is still sent.',
}
const RESUME: Steer = {
  change: resumeBulkJob,
  name: 'bulk_job_resumed',
  said: 'The job goes on where it was.',
}
const CANCEL: Steer = {
  change: cancelBulkJob,
  name: 'bulk_job_cancelled',
  said: 'The job is cancelled.',
}

async function steer(visit: Visit, { change, name, said }: Steer): Promise<Answer> {
  const job = await jobOf(visit)
  await visit.change(async (scope) => {
    if (!(await change(scope, job.id, visit.now))) visit.ctx.throw(404)
    const target = await jobTarget(visit, job)
    await visit.audit(scope, {
      action: `${target.type}.${name}`,
      target,
      details: { bulk_job_id: job.id, kind: job.kind },
    })
  })
  return { to: `/webhooks/jobs/${job.id}`, notice: { kind: 'ok', text: said } }
}

/** The webhook that it is about, or the account. */
async function jobTarget({ scope, account }: Visit, { webhookId }: BulkJob): Promise<AuditTarget> {
  if (webhookId === null) return { type: 'account', id: account.id, name: account.name }
  const name = (await findWebhookNames(scope, [webhookId])).get(webhookId) ?? ''
  return { type: 'webhook', id: webhookId, name }
}
