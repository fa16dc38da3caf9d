/** Times, durations, sizes and numbers as text. */

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** `2026-03-02 09:30:00 UTC`. */
export function utc(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/** `12 min ago`, `in 5 s`. */
export function relative(ms: number): string {
  const size = Math.abs(ms)
  const text =
    size < 1_000
      ? 'now'
      : size < MINUTE
        ? `${Math.floor(size / 1_000)} s`
        : size < HOUR
          ? `${Math.floor(size / MINUTE)} min`
          : size < DAY
            ? `${Math.floor(size / HOUR)} h`
            : `${Math.floor(size / DAY)} d`
  if (text === 'now') return 'now'
  return ms < 0 ? `${text} ago` : `in ${text}`
}

/** `in 4 min 12 s`, `in 2 h 5 min`. */
export function remaining(ms: number): string {
  const seconds = Math.floor(ms / 1_000)
  if (seconds < 1) return 'now'
  if (ms < MINUTE) return `in ${seconds} s`
  if (ms < HOUR) return `in ${Math.floor(ms / MINUTE)} min ${seconds % 60} s`
  return ms < DAY
    ? `in ${Math.floor(ms / HOUR)} h ${Math.floor((ms % HOUR) / MINUTE)} min`
    : `in ${Math.floor(ms / DAY)} d ${Math.floor((ms % DAY) / HOUR)} h`
}

/** `8 ms`, `1.89 s`. */
export function duration(ms: number): string {
  return ms < 1_000
    ? `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`
    : `${(ms / 1_000).toPrecision(3)} s`
}

/** `1,234`. */
export function count(value: number): string {
  return value.toLocaleString('en')
}

/** `1 key`, `2 keys`. */
export function counted(value: number, noun: string, plural = `${noun}s`): string {
  return `${count(value)} ${value === 1 ? noun : plural}`
}

export function bytes(size: number): string {
  return size < 1_024
    ? `${size} bytes`
    : size < 1_048_576
      ? `${(size / 1_024).toFixed(1)} KiB`
      : `${(size / 1_048_576).toFixed(1)} MiB`
}
