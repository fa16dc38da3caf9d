/** The time zone of the user: the one that they chose, or else the one that their browser has
 *  detected. Both are cookies, as the theme is, so that the first page has the right times. */
import type { Context } from 'koa'
import { type Html, html } from '../shared/html.ts'
import { currentZone, parseZone } from '../shared/zone.ts'
import { selectField } from './form-fields.ts'
import { zoneTitle } from './format.ts'
import type { GuestVisit } from './page.ts'
import { hiddenInput } from './ui.ts'

const CHOSEN_COOKIE = 'muster-zone'
/** Written by client/console.js. */
const DETECTED_COOKIE = 'muster-detected-zone'
const YEAR_MS = 365 * 86_400_000

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

/** An empty zone is the detected one. */
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
    ${hiddenInput('zone', isUtc ? '' : 'UTC')}
    <button class="clip" title="${action}" aria-label="${label}. ${action}.">${label}</button>
  </form>`
}

export function zoneField(ctx: Context): Html {
  return selectField({
    name: 'zone',
    label: 'Time zone of this browser',
    none: `Detected: ${zoneTitle(detectedZone(ctx))}`,
    value: parseZone(ctx.cookies.get(CHOSEN_COOKIE)) ?? '',
    choices: ['UTC', ...Intl.supportedValuesOf('timeZone')].map((value) => ({
      value,
      label: zoneTitle(value),
    })),
  })
}
