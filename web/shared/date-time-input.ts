/** Times in the format of `<input type="datetime-local">` in UTC, or a date alone (midnight). */

const FORMAT = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?)?$/

export const DATE_TIME_ERROR = 'Enter a date and time in UTC, for example 2026-11-21T09:30.'

/** Returns epoch milliseconds, or undefined if the text is not in this format. */
export function parseDateTimeInput(text: string): number | undefined {
  if (!FORMAT.test(text)) return undefined
  const time = Date.parse(text.includes('T') ? `${text}Z` : text)
  // `Date.parse` reads 31 February as 3 March.
  return isSameDay(time, text) ? time : undefined
}

function isSameDay(epochMs: number, text: string): boolean {
  return !Number.isNaN(epochMs) && toDateTimeInput(epochMs).slice(0, 10) === text.slice(0, 10)
}

/** Truncates to the minute. */
export function toDateTimeInput(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 16)
}
