/** The fields of a webhook: the form and its validation. */
import { Refused } from '../../../errors.ts'
import { eventTypes, operationalTypes } from '../../../generated/events.ts'
import { parseName } from '../../../records/names.ts'
import {
  isEventType,
  type Ordering,
  orderings,
  simplifyEventTypes,
} from '../../../records/subscriptions.ts'
import {
  HeadersOfOtherHost,
  haveSameOrigin,
  readableUrl,
  type Webhook,
} from '../../../records/webhooks.ts'
import {
  assertHeader,
  type HeaderChange,
  parseHeaderLines,
} from '../../../webhooks/transport/custom-headers.ts'
import { parseWebhookUrl } from '../../../webhooks/transport/egress.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import {
  type Choice,
  checkFields,
  choiceField,
  choiceInput,
  type Errors,
  foldedFields,
  textArea,
  textField,
} from '../form-fields.ts'
import { replace } from '../htmx.ts'
import { label } from '../records/labels.ts'
import type { ConsoleConfig } from '../services.ts'
import { facts, withCode } from '../ui.ts'
import { noticeChoices } from './notice-choices.ts'

/** The fields as the user typed them. */
export interface WebhookInput {
  url: string
  description: string
  eventTypes: string[]
  ordering: string
  /** One header per line. */
  headers: string
}

const ALL = '*'

export const blankWebhook: WebhookInput = {
  url: '',
  description: '',
  eventTypes: [],
  ordering: 'none',
  headers: '',
}

/** Stands for a stored value, which nobody can read back. It is no valid value. */
const STORED_VALUE = '••••••••'

export function toWebhookInput(webhook: Webhook): WebhookInput {
  const headers = webhook.headerNames.map((name) => `${name}: ${STORED_VALUE}`).join('\n')
  return { ...webhook, url: readableUrl(webhook.url), headers }
}

export function readWebhookForm(form: URLSearchParams): WebhookInput {
  return {
    url: form.get('url') ?? '',
    description: form.get('description') ?? '',
    eventTypes: form.getAll('event_types'),
    ordering: form.get('ordering') ?? 'none',
    headers: form.get('headers') ?? '',
  }
}

interface ValidatedWebhook {
  webhook: Pick<Webhook, 'url' | 'description' | 'eventTypes' | 'ordering'>
  headers: HeaderChange
  errors: Errors
}

/** Use `webhook` and `headers` only if `errors` is empty. `before` is the webhook to change. */
export function validateWebhook(
  input: WebhookInput,
  { webhookAllowedRanges }: Pick<ConsoleConfig, 'webhookAllowedRanges'>,
  before?: Webhook,
): ValidatedWebhook {
  let url = ''
  let headers: HeaderChange = {}
  const description = input.description.trim()
  const errors = checkFields({
    url() {
      url = parseWebhookUrl(input.url.trim(), webhookAllowedRanges)
    },
    description: () => description === '' || parseName('The description', description),
    event_types: () => assertEventTypes(input.eventTypes),
    ordering: () => assertOrdering(input.ordering),
    headers() {
      headers = readHeaders(input.headers, url, before)
    },
  })
  const types = simplifyEventTypes(input.eventTypes)
  return {
    webhook: { url, description, eventTypes: types, ordering: input.ordering as Ordering },
    headers,
    errors,
  }
}

/** A stored header without a line is removed. One whose value was not replaced stays. */
function readHeaders(text: string, url: string, before?: Webhook): HeaderChange {
  const storedNames = before?.headerNames ?? []
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const parsed = Object.entries(parseHeaderLines(lines))
  const isSame = (one: string) => (other: string) => one.toLowerCase() === other.toLowerCase()
  const set = parsed.filter(
    ([name, value]) => value !== STORED_VALUE || !storedNames.some(isSame(name)),
  )
  for (const [name, value] of set) assertHeader(name, value)
  const kept = parsed.filter((header) => !set.includes(header)).map(([name]) => name)
  // Without a URL, there is another error.
  if (before && url && kept.length > 0 && !haveSameOrigin(url, before.url))
    throw new HeadersOfOtherHost(kept)
  const removed = storedNames.filter((name) => !parsed.map(([other]) => other).some(isSame(name)))
  return Object.fromEntries([...removed.map((name) => [name, null] as const), ...set])
}

function assertEventTypes(types: string[]): void {
  if (types.length === 0) throw new Refused('Choose at least one event')
  const unknown = types.find((type) => type !== ALL && !isEventType(type))
  if (unknown !== undefined) throw new Refused(`There is no event “${unknown.slice(0, 100)}”`)
}

function assertOrdering(ordering: string): void {
  if (!orderings.some((known) => known === ordering)) throw new Refused('Choose an order')
}

export function webhookFields(input: WebhookInput, errors: Errors): Content {
  return [
    urlField(input.url, errors.url?.join(' ')),
    textField({
      name: 'description',
      label: 'Description',
      hint: 'For example “Order system, production”. Shown as the webhook’s name.',
      value: input.description,
      maxLength: 200,
      errors,
    }),
    eventsField(input.eventTypes, errors.event_types?.join(' ')),
    moreFields(input, errors),
  ]
}

/** Folded, because most webhooks need neither. */
function moreFields(input: WebhookInput, errors: Errors): Html {
  const keptValues =
    input.headers.includes(STORED_VALUE) &&
    html` A line with <code>${STORED_VALUE}</code> keeps its value.`
  const isUsed = input.ordering !== blankWebhook.ordering || input.headers.trim() !== ''
  const isOpen = isUsed || 'ordering' in errors || 'headers' in errors
  const fields = html`
    ${choiceField({
      name: 'ordering',
      legend: 'Order',
      choices: [
        {
          value: 'none',
          label: 'As fast as possible',
          hint: 'Sends several events at once. A failing delivery does not delay the others.',
        },
        {
          value: 'by_resource',
          label: 'In order for each record',
          hint: 'An event waits until the previous one of its record is delivered or has failed.',
        },
      ],
      values: [input.ordering],
      errors,
    })}
    ${textArea({
      name: 'headers',
      label: 'Headers',
      hint: html`Sent with each request, one per line: <code>X-Api-Key: value</code>. Values are
        encrypted, and nobody can read them again.${keptValues}`,
      value: input.headers,
      rows: 3,
      isCode: true,
      errors,
    })}`
  return foldedFields('Order and headers', fields, isOpen)
}

/** While the user types, the server checks the URL and htmx shows its verdict. */
const CHECK_URL_ON_INPUT = replace('url-verdict', {
  path: '/console/webhooks/check-url',
  method: 'post',
  trigger: 'change, input delay:500ms',
})

function urlField(value: string, problem: string | undefined): Html {
  return html`<div class="field" ${CHECK_URL_ON_INPUT}>
    <label for="field-url">URL</label>
    <p class="hint" id="field-url-hint">The public https URL that receives each event by POST.</p>
    <input
      type="url"
      id="field-url"
      name="url"
      value="${value}"
      required
      maxlength="2048"
      autocomplete="off"
      placeholder="https://example.com/webhooks"
      aria-describedby="field-url-hint url-verdict"
      ${problem !== undefined && html`aria-invalid="true"`}
    >
    ${urlVerdict(problem === undefined ? false : urlError(problem))}
  </div>`
}

/** The element that htmx replaces. */
export function urlVerdict(content: Content): Html {
  return html`<div id="url-verdict" aria-live="polite">${content}</div>`
}

export function urlError(problem: string): Html {
  return html`<p class="field-error" id="field-url-error">${problem}</p>`
}

function eventsField(chosen: string[], problem: string | undefined): Html {
  const errorId = 'field-event_types-error'
  const allHint = 'Includes event types added later, but no notices.'
  const all = { value: ALL, label: 'All events', hint: allHint }
  const groups = Map.groupBy(Object.values(eventTypes), ({ resourceType }) => resourceType)
  return html`<fieldset
    class="field choices event-types"
    ${problem !== undefined && html`aria-describedby="${errorId}"`}
  >
    <legend>Events</legend>
    ${problem !== undefined && html`<p class="field-error" id="${errorId}">${problem}</p>`}
    ${eventChoice(all, chosen)}
    ${[...groups].map(([resource, types]) =>
      eventGroup(label(resource), types.map(typeChoice), chosen),
    )}
    ${eventGroup('Notices', noticeChoices, chosen)}
    ${eventMeanings}
  </fieldset>`
}

function eventGroup(legend: string, choices: Choice[], chosen: string[]): Html {
  return html`<fieldset class="event-group">
    <legend>${legend}</legend>
    <div>${choices.map((choice) => eventChoice(choice, chosen))}</div>
  </fieldset>`
}

function eventChoice(choice: Choice, values: string[]): Html {
  return choiceInput(choice, { type: 'checkbox', name: 'event_types', values })
}

/** `Status changed` for `job_application.status_changed`: the legend of the group has the rest. */
function typeChoice({ name }: { name: string }): Choice {
  const [, verb = ''] = name.split('.')
  return { value: name, label: html`<span title="${name}">${label(verb)}</span>` }
}

const eventMeanings = html`<details class="event-meanings">
  <summary>When each event is sent</summary>
  ${facts(
    Object.entries({ ...eventTypes, ...operationalTypes }).map(([name, { description }]) => [
      name,
      withCode(description),
    ]),
  )}
</details>`
