/** The time zone of the user: the one that they chose, or else the one that their browser has
 *  detected. Both are cookies, as the theme is, so that the first page has the right times. */
import type { Context } from 'koa'
import { DAY_MS } from '../../records/time-units.ts'
import { type Html, html } from '../shared/html.ts'
import { currentZone, parseZone } from '../shared/zone.ts'
import { selectField } from './form-fields.ts'
import { zoneTitle } from './format.ts'
import type { GuestVisit } from './page.ts'
import { hiddenInput } from './ui.ts'

const CHOSEN_COOKIE = 'muster-zone'
/** Written by client/console.js. */
const DETECTED_COOKIE = 'muster-detected-zone'
export const YEAR_MS = 365 * DAY_MS

/** A form with times has this field, so that its times keep their meaning if the zone changes
 *  before it is sent. */
const ZONE_FIELD = 'form:zone'

export function zoneOf(ctx: Context): string {
  return parseZone(ctx.cookies.get(CHOSEN_COOKIE)) ?? detectedZone(ctx)
}

export function zoneOfForm({ form }: GuestVisit): string {
  return parseZone(form.get(ZONE_FIELD)) ?? currentZone()
}

export const zoneInput = (): Html => hiddenInput(ZONE_FIELD, currentZone())

function detectedZone(ctx: Context): string {
  return parseZone(ctx.cookies.get(DETECTED_COOKIE)) ?? 'UTC'
}

/** Any other text stands for the detected zone. */
const DETECTED = 'detected'

export function chooseZone({ form, ctx }: GuestVisit): void {
  ctx.cookies.set(CHOSEN_COOKIE, parseZone(form.get('zone')) ?? null, {
    httpOnly: true,
    sameSite: 'lax',
    maxAge: YEAR_MS,
  })
}

/** A button that switches between UTC and the detected zone. Undefined if these are the same. */
export function zoneSwitch(ctx: Context): Html | undefined {
  const isUtc = currentZone() === 'UTC'
  const detected = detectedZone(ctx)
  if (isUtc && detected === 'UTC') return undefined
  const label = `Times: ${zoneTitle()}`
  const action = `Change to ${isUtc ? zoneTitle(detected) : 'UTC'}`
  return html`<form class="zone" method="post" action="/console/time-zone">
    ${hiddenInput('zone', isUtc ? DETECTED : 'UTC')}
    <button class="clip" title="${action}" aria-label="${label}. ${action}.">${label}</button>
  </form>`
}

export function zoneField(ctx: Context): Html {
  return selectField({
    name: 'zone',
    label: 'Time zone',
    isRequired: true,
    value: parseZone(ctx.cookies.get(CHOSEN_COOKIE)) ?? DETECTED,
    choices: [
      { value: DETECTED, label: `Detected: ${zoneTitle(detectedZone(ctx))}` },
      ...['UTC', ...Intl.supportedValuesOf('timeZone')].map((value) => ({
        value,
        label: zoneTitle(value),
      })),
    ],
  })
}
