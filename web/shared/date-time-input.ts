/** Times in the format of `<input type="datetime-local">` in the current zone, or a date alone
 *  (midnight). Links have times in UTC, with a `Z`, because other users may open them. */
import { fromWallClock, toWallClock } from './zone.ts'

const FORMAT = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z?)?$/

export const DATE_TIME_ERROR = 'Enter a date and time, for example 2026-11-21T09:30.'

/** Returns epoch milliseconds, or undefined if the text is not in this format. */
export function parseDateTimeInput(text: string): number | undefined {
  if (!FORMAT.test(text)) return undefined
  const local = text.includes('T') ? text : `${text}T00:00`
  const time = local.endsWith('Z') ? Date.parse(local) : fromWallClock(local)
  // `Date.parse` reads 31 February as 3 March.
  const day = Date.parse(`${text.slice(0, 10)}T00:00Z`)
  const isRealDay = !Number.isNaN(day) && new Date(day).toISOString().startsWith(text.slice(0, 10))
  return isRealDay && !Number.isNaN(time) ? time : undefined
}

/** Truncates to the minute. */
export function toDateTimeInput(epochMs: number): string {
  return toWallClock(epochMs).slice(0, 16)
}

/** A time in UTC for a link. Truncates to the minute. */
export function toLinkTime(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 16)}Z`
}

/** The value of the input for a text from a form or a link. */
export function shownInInput(text: string): string {
  const time = text.endsWith('Z') ? parseDateTimeInput(text) : undefined
  return time === undefined ? text : toDateTimeInput(time)
}
