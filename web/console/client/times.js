/** Times relative to now, for the server and for the browser. */

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

/**
 * `12 min ago`, `in 5 s`.
 * @param {number} ms from now; negative in the past
 */
export function relative(ms) {
  const size = Math.abs(ms)
  if (size < 1_000) return 'now'
  const [unit, name] =
    size < MINUTE
      ? [1_000, 's']
      : size < HOUR
        ? [MINUTE, 'min']
        : size < DAY
          ? [HOUR, 'h']
          : [DAY, 'd']
  const text = `${Math.floor(size / unit)} ${name}`
  return ms < 0 ? `${text} ago` : `in ${text}`
}

/**
 * `in 4 min 12 s`, `in 2 h 5 min`.
 * @param {number} ms from now
 */
export function remaining(ms) {
  const seconds = Math.floor(ms / 1_000)
  if (seconds < 1) return 'now'
  if (ms < MINUTE) return `in ${seconds} s`
  if (ms < HOUR) return `in ${Math.floor(ms / MINUTE)} min ${seconds % 60} s`
  return ms < DAY
    ? `in ${Math.floor(ms / HOUR)} h ${Math.floor((ms % HOUR) / MINUTE)} min`
    : `in ${Math.floor(ms / DAY)} d ${Math.floor((ms % DAY) / HOUR)} h`
}
