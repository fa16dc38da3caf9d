/** What people give to make a webhook, or to change one. */

import { Refused } from '../../../errors.ts'
import { eventTypes } from '../../../generated/events.ts'
import { assertName } from '../../../records/names.ts'
import { type Ordering, orderings, type Webhook } from '../../../records/webhooks.ts'
import type { Config } from '../../../server/config.ts'
import { assertWebhookUrl } from '../../../webhooks/transport/egress.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { choiceField, code, type Errors, problemsOf, textField } from '../ui.ts'

/** As it was typed. */
export interface GivenWebhook {
  url: string
  description: string
  eventTypes: string[]
  ordering: string
}

const ALL = '*'

export const blankWebhook: GivenWebhook = {
  url: '',
  description: '',
  eventTypes: [],
  ordering: 'none',
}

export function givenWebhook(form: URLSearchParams): GivenWebhook {
  return {
    url: form.get('url') ?? '',
    description: form.get('description') ?? '',
    eventTypes: form.getAll('event_types'),
    ordering: form.get('ordering') ?? 'none',
  }
}

/** As it is stored, or what is wrong with each field. */
export function checkedWebhook(
  given: GivenWebhook,
  { webhookAllowAddresses }: Pick<Config, 'webhookAllowAddresses'>,
): { webhook: Pick<Webhook, 'url' | 'description' | 'eventTypes' | 'ordering'>; errors: Errors } {
  let url = ''
  const description = given.description.trim()
  const errors = problemsOf({
    url() {
      url = assertWebhookUrl(given.url.trim(), webhookAllowAddresses)
    },
    description: () => description === '' || assertName('The description', description),
    event_types: () => assertEventTypes(given.eventTypes),
    ordering: () => assertOrdering(given.ordering),
  })
  const types = given.eventTypes.includes(ALL) ? [ALL] : [...new Set(given.eventTypes)]
  return {
    webhook: { url, description, eventTypes: types, ordering: given.ordering as Ordering },
    errors,
  }
}

function assertEventTypes(types: string[]): void {
  if (types.length === 0) throw new Refused('Choose at least one event')
  const unknown = types.find((type) => type !== ALL && !Object.hasOwn(eventTypes, type))
  if (unknown !== undefined) throw new Refused(`There is no event “${unknown.slice(0, 100)}”`)
}

function assertOrdering(ordering: string): void {
  if (!orderings.some((one) => one === ordering)) throw new Refused('Choose one of the orders')
}

export function webhookFields(given: GivenWebhook, errors: Errors): Content {
  return [
    urlField(given.url, errors.url?.join(' ')),
    textField({
      name: 'description',
      label: 'Description',
      hint: 'What it is for, such as “Order system, production”. It is what the webhook is called here.',
      value: given.description,
      maxLength: 200,
      errors,
    }),
    eventsField(given.eventTypes, errors.event_types?.join(' ')),
    choiceField({
      name: 'ordering',
      legend: 'Order',
      choices: [
        {
          value: 'none',
          label: 'As fast as possible',
          hint: 'Events are sent as they happen, several at once. One that fails holds up no other.',
        },
        {
          value: 'by_resource',
          label: 'In order for each record',
          hint: 'The next event of a record is sent once the one before it has arrived, or has failed for good.',
        },
      ],
      values: [given.ordering],
      errors,
    }),
  ]
}

/** Asks the server about the address when it has been typed. */
function urlField(value: string, problem: string | undefined): Html {
  return html`<div class="field" hx-post="/console/webhooks/address" hx-trigger="change, input delay:500ms" hx-target="#url-verdict" hx-select="#url-verdict" hx-swap="outerHTML ignoreTitle:true"><label for="field-url">Address</label><p class="hint" id="field-url-hint">Where events are sent to by POST: a public https address of yours.</p><input type="url" id="field-url" name="url" value="${value}" required maxlength="2048" autocomplete="off" placeholder="https://example.com/webhooks" aria-describedby="field-url-hint url-verdict"${problem !== undefined && html` aria-invalid="true"`}>${urlVerdict(problem === undefined ? undefined : { problem })}</div>`
}

/** What there is to say of an address. */
export function urlVerdict(verdict?: { problem: string } | { url: string }): Html {
  return html`<div id="url-verdict" aria-live="polite">${
    verdict &&
    ('problem' in verdict
      ? html`<p class="field-error" id="field-url-error">${verdict.problem}</p>`
      : html`<p class="field-good">This address can be used.${verdict.url.length > 0 && html` It is checked again at each attempt.`}</p>`)
  }</div>`
}

function eventsField(chosen: string[], problem: string | undefined): Html {
  const groups = Map.groupBy(Object.values(eventTypes), ({ resourceType }) => resourceType)
  return html`<fieldset class="field choices event-types"${problem !== undefined && html` aria-describedby="field-event_types-error"`}><legend>Events</legend>${problem !== undefined && html`<p class="field-error" id="field-event_types-error">${problem}</p>`}${choice(ALL, 'All events', 'Those to come included.', chosen)}${[
    ...groups,
  ].map(
    ([resource, types]) =>
      html`<fieldset class="event-group"><legend>${words(resource)}</legend><div>${types.map(({ name, description }) => choice(name, code(name), inlineCode(description), chosen))}</div></fieldset>`,
  )}</fieldset>`
}

function choice(value: string, label: Content, hint: Content, chosen: string[]): Html {
  return html`<label class="choice"><input type="checkbox" name="event_types" value="${value}"${chosen.includes(value) && html` checked`}><span><span class="choice-label">${label}</span><span class="hint">${hint}</span></span></label>`
}

/** `job_application`: Job application. */
function words(name: string): string {
  const text = name.replaceAll('_', ' ')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}

/** Texts of the contract mark code with backticks. */
function inlineCode(text: string): Content {
  return text.split('`').map((part, index) => (index % 2 === 1 ? code(part) : part))
}
