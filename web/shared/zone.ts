/** The time zone in which a request shows and reads times. Times without a zone, such as those of
 *  `<input type="datetime-local">`, are in this zone. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { DAY_MS } from '../../records/time-units.ts'
import { RecentMap } from '../../runtime/recent-map.ts'

const current = new AsyncLocalStorage<string>()

/** Runs `work` with a zone from `parseZone`. */
export const inZone = <T>(zone: string, work: () => T): T => current.run(zone, work)

/** `Europe/Berlin`. UTC outside of `inZone`. */
export const currentZone = (): string => current.getStore() ?? 'UTC'

const MAX_NAME_CHARACTERS = 64

/** The name of an IANA time zone in its usual spelling. Undefined if there is no such zone. */
export function parseZone(name: string | null | undefined): string | undefined {
  if (name && formats.get(name)) return name
  if (!name || name.length > MAX_NAME_CHARACTERS || !/^[A-Za-z]/.test(name)) return undefined
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone
  } catch {
    return undefined
  }
}

interface Formats {
  /** `2026-03-02 09:30:00` */
  clock: Intl.DateTimeFormat
  /** `CET` */
  name: Intl.DateTimeFormat
}

const MAX_ZONES = 50
const formats = new RecentMap<string, Formats>(MAX_ZONES)

/** A format takes long to create, and a page shows hundreds of times. */
function formatsOf(timeZone: string): Formats {
  const known = formats.get(timeZone)
  if (known) return known
  const created: Formats = {
    clock: new Intl.DateTimeFormat('sv-SE', {
      timeZone,
      ...{ year: 'numeric', month: '2-digit', day: '2-digit' },
      ...{ hour: '2-digit', minute: '2-digit', second: '2-digit' },
    }),
    name: new Intl.DateTimeFormat('en-GB', { timeZone, timeZoneName: 'short' }),
  }
  formats.set(timeZone, created)
  return created
}

/** `2026-03-02T09:30:00`, in the current zone. */
export function toWallClock(epochMs: number): string {
  const zone = currentZone()
  return zone === 'UTC'
    ? new Date(epochMs).toISOString().slice(0, 19)
    : formatsOf(zone).clock.format(epochMs).replace(' ', 'T')
}

/** The epoch milliseconds of `2026-03-02T09:30:00`, as the clocks of the current zone show it. The
 *  first of two such times when the clocks go back. NaN for another text. */
export function fromWallClock(text: string): number {
  const asUtc = Date.parse(`${text}Z`)
  if (Number.isNaN(asUtc)) return asUtc
  const offsetAt = (epochMs: number): number => {
    const wholeSeconds = Math.floor(epochMs / 1_000) * 1_000
    return Date.parse(`${toWallClock(wholeSeconds)}Z`) - wholeSeconds
  }
  // A zone has one offset a day before, and another one a day after the clocks change.
  const [before, after] = [asUtc - offsetAt(asUtc - DAY_MS), asUtc - offsetAt(asUtc + DAY_MS)]
  return [before, after].find((epochMs) => epochMs + offsetAt(epochMs) === asUtc) ?? before
}

/** `CET`, `UTC`, `GMT-5`. The name of the current zone at a time. */
export function zoneName(epochMs: number): string {
  if (currentZone() === 'UTC') return 'UTC'
  const parts = formatsOf(currentZone()).name.formatToParts(epochMs)
  return parts.find(({ type }) => type === 'timeZoneName')?.value ?? 'UTC'
}
