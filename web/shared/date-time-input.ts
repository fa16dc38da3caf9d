/** Times in the format of `<input type="datetime-local">` in UTC, or a date alone (midnight). */

const FORMAT = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?)?$/

export const DATE_TIME_ERROR = 'Enter a date and time in UTC, for example 2026-11-21T09:30.'

/** Returns epoch milliseconds, or undefined if the text is not in this format. */
export function parseDateTimeInput(text: string): number | undefined {
  if (!FORMAT.test(text)) return undefined
  const time = Date.parse(text.includes('T') ? `${text}Z` : text)
  return Number.isNaN(time) ? undefined : time
}

/** Truncates to the minute. */
export function toDateTimeInput(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 16)
}
