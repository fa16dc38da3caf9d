/** The forms that start a bulk job. Before the start, they show how many deliveries the job has. */
import { Refused } from '../../../errors.ts'
import { countSelected } from '../../../records/bulk-batches.ts'
import type { BulkKind, BulkSelection } from '../../../records/bulk-jobs.ts'
import { DAY_MS } from '../../../records/time-units.ts'
import type { Webhook } from '../../../records/webhooks.ts'
import {
  DEFAULT_RATE,
  MAX_RATE,
  selectFailedDeliveries,
  selectMissedEvents,
  selectWaitingDeliveries,
} from '../../../webhooks/bulk.ts'
import { startJob } from '../../../webhooks/webhook-changes.ts'
import { DATE_TIME_ERROR, shownInInput, toDateTimeInput } from '../../shared/date-time-input.ts'
import { type Content, html } from '../../shared/html.ts'
import { type Errors, hasErrors, selectField, textField } from '../form-fields.ts'
import { absoluteTime, counted, timeLabel } from '../format.ts'
import { replace } from '../htmx.ts'
import {
  AlreadyCreated,
  createOnce,
  FORM_KEY,
  formKey,
  RESENT_WITH_CHANGES,
} from '../idempotent-form.ts'
import {
  type ConsolePage,
  canManageWebhooks,
  get,
  type PageResult,
  post,
  type Route,
  redirect,
  type Visit,
} from '../page.ts'
import { zoneInput } from '../time-zone.ts'
import { button, buttonLink, card, note } from '../ui.ts'
import { BULK_KINDS, roughDuration } from './bulk-kinds.ts'
import { loggedTypes, readPeriod, typeChoices } from './log-query.ts'
import { loadWebhook, webhookCrumbs } from './webhook.ts'

export const bulkStartRoutes: Route[] = (
  ['send_missed', 'retry_failed', 'retry_waiting'] as const
).flatMap((kind) => {
  const path = `/webhooks/:webhook/${BULK_KINDS[kind].path}`
  return [
    get(path, canManageWebhooks, (visit) => bulkPage(visit, kind, visit.query)),
    post(path, canManageWebhooks, (visit) => startFromForm(visit, kind)),
  ]
})

interface BulkForm {
  /** The fields as typed, or their defaults. */
  input: Record<'since' | 'until' | 'type' | 'rate', string>
  errors: Errors
  /** Undefined if there are errors. */
  selection?: BulkSelection
  /** Deliveries per second. 0 if there are errors. */
  rate: number
}

function readBulkForm(
  { now }: Visit,
  webhook: Webhook,
  kind: BulkKind,
  typed: URLSearchParams,
): BulkForm {
  const dayAgo = new Date(now.getTime() - DAY_MS)
  const defaultSince = kind === 'retry_failed' ? toDateTimeInput(dayAgo.getTime()) : ''
  const input = {
    since: shownInInput(typed.get('since')?.trim() ?? defaultSince),
    until: shownInInput(typed.get('until')?.trim() ?? ''),
    type: typed.get('type') ?? '',
    rate: typed.get('rate')?.trim() || String(DEFAULT_RATE),
  }
  const errors: Errors = {}
  const period = readPeriod(input, errors)
  if (input.since === '' && !isSinceOptional(webhook, kind)) errors.since = [DATE_TIME_ERROR]
  if (!/^[1-9]\d{0,3}$/.test(input.rate) || Number(input.rate) > MAX_RATE)
    errors.rate = [`Enter a whole number from 1 to ${MAX_RATE}.`]
  if (input.type !== '' && !loggedTypes.includes(input.type))
    errors.type = ['Choose an event from the list.']
  if (hasErrors(errors)) return { rate: 0, input, errors }

  const since = period.since === undefined ? undefined : new Date(period.since)
  const until = period.until === undefined ? undefined : new Date(period.until)
  const types = input.type === '' ? null : [input.type]
  const selections: Record<BulkKind, () => BulkSelection> = {
    send_missed: () => selectMissedEvents(webhook, { since, until }, now),
    retry_failed: () =>
      selectFailedDeliveries(webhook.id, types, { since: since ?? dayAgo, until }, now),
    retry_waiting: () => selectWaitingDeliveries(webhook.id, types, now),
  }
  return { selection: selections[kind](), rate: Number(input.rate), input, errors }
}

/** Whether “From” may be empty. An empty “From” means the time when the webhook was last
 *  disabled. A job that retries waiting deliveries has no period. */
function isSinceOptional({ disabledAt }: Webhook, kind: BulkKind): boolean {
  return kind === 'retry_waiting' || (kind === 'send_missed' && disabledAt !== null)
}

async function bulkPage(
  visit: Visit,
  kind: BulkKind,
  typed: URLSearchParams,
  problem?: string,
): Promise<ConsolePage> {
  const webhook = await loadWebhook(visit)
  const form = readBulkForm(visit, webhook, kind, typed)
  const { title, lead, path } = BULK_KINDS[kind]
  const url = `/console/webhooks/${webhook.id}/${path}`
  // An empty field of a form that was just opened is not an error yet.
  const isJustOpened = typed.size === 0
  const errors = isJustOpened ? {} : form.errors
  const hasProblem = problem !== undefined || hasErrors(errors)
  // htmx does not show a response with an error status, so its requests get 200.
  const isFullPage = visit.ctx.get('HX-Request') === ''
  // The Enter key presses the first button. Therefore the first button starts no job.
  const countButton = button('Count deliveries')
  const countOnChange = replace('preview', { path: url, trigger: 'change' })
  const previewContent = await preview(visit, kind, form, isJustOpened)
  return {
    title,
    lead,
    crumbs: webhookCrumbs(webhook),
    status: hasProblem && isFullPage ? 422 : 200,
    isNarrow: true,
    body: [
      !webhook.enabled && note('warn', 'This webhook is disabled. Enable it first.'),
      card(
        '',
        html`<form class="form" method="get" action="${url}" novalidate ${countOnChange}>
          ${zoneInput()}
          ${problem !== undefined && note('bad', problem)}
          ${bulkFields(webhook, kind, form.input, errors)}
          <div id="preview" aria-live="polite">${previewContent}</div>
          <div class="form-actions">
            ${countButton}
            <button
              class="button primary"
              formmethod="post"
              name="${FORM_KEY}"
              value="${formKey(visit, problem)}"
            >${title}</button>
            ${buttonLink(`/webhooks/${webhook.id}`, 'Cancel', 'quiet')}
          </div>
        </form>`,
      ),
    ],
  }
}

function bulkFields(
  webhook: Webhook,
  kind: BulkKind,
  input: BulkForm['input'],
  errors: Errors,
): Content {
  const isOptional = isSinceOptional(webhook, kind)
  const disabledAt = absoluteTime(webhook.disabledAt ?? 0).slice(0, 16)
  return [
    kind !== 'retry_waiting' &&
      html`<div class="two-fields">
      ${textField({
        name: 'since',
        label: timeLabel('From'),
        hint: isOptional && `Default: ${disabledAt}, when the webhook was disabled.`,
        type: 'datetime-local',
        value: input.since,
        isRequired: !isOptional,
        errors,
      })}
      ${textField({
        name: 'until',
        label: timeLabel('Until'),
        hint: isOptional && 'Default: now.',
        type: 'datetime-local',
        value: input.until,
        errors,
      })}
    </div>`,
    kind !== 'send_missed' &&
      selectField({
        name: 'type',
        label: 'Event',
        none: 'All',
        value: input.type,
        choices: typeChoices,
        errors,
      }),
    textField({
      name: 'rate',
      label: 'Maximum per second',
      hint: 'Leaves capacity for new events.',
      type: 'number',
      value: input.rate,
      isRequired: true,
      errors,
    }),
  ]
}

async function preview(
  { scope }: Visit,
  kind: BulkKind,
  { selection, rate, errors }: BulkForm,
  isJustOpened: boolean,
): Promise<Content> {
  const [firstError = []] = Object.values(errors)
  if (!selection) {
    const text = isJustOpened
      ? 'Choose a time range to count the deliveries.'
      : firstError.join(' ')
    return html`<p class="muted">${text}</p>`
  }
  const total = await countSelected(scope, selection)
  if (total === 0) return note('quiet', BULK_KINDS[kind].empty)
  const deliveries = counted(total, 'delivery', 'deliveries')
  return note('busy', html`<strong>${deliveries}</strong>, about ${roughDuration(total / rate)}.`)
}

async function startFromForm(visit: Visit, kind: BulkKind): Promise<PageResult> {
  const webhook = await loadWebhook(visit)
  const { selection, rate } = readBulkForm(visit, webhook, kind, visit.form)
  if (!selection) return bulkPage(visit, kind, visit.form)
  const { empty, started } = BULK_KINDS[kind]
  const total = await countSelected(visit.scope, selection)
  if (total === 0) return bulkPage(visit, kind, visit.form, empty)
  try {
    const fields = { selection, rate, total, createdBy: visit.user.id }
    const job = await createOnce(visit, (scope) => startJob({ ...visit, scope }, webhook, fields))
    return redirect(`/webhooks/jobs/${job.id}`, started)
  } catch (error) {
    if (error instanceof AlreadyCreated)
      return error.hasDifferentInput
        ? bulkPage(visit, kind, visit.form, RESENT_WITH_CHANGES)
        : redirect(`/webhooks/jobs/${error.id}`, started)
    if (error instanceof Refused) return bulkPage(visit, kind, visit.form, error.message)
    throw error
  }
}
