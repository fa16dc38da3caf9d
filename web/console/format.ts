/** Formats times (in epoch milliseconds), durations, sizes and numbers. */
import { LAST_BIN_FROM_MS } from '../../records/duration-bins.ts'
import { currentZone, toWallClock, zoneName } from '../shared/zone.ts'

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** `America/New York`. By default, the zone of the times on the page. */
export const zoneTitle = (zone = currentZone()): string => zone.replaceAll('_', ' ')

/** `From (Berlin)`: the label of a time without a zone. */
export const timeLabel = (label: string): string => `${label} (${zoneTitle().split('/').at(-1)})`

/** `2026-03-02 09:30:00 UTC`, like all times in the zone of the user. */
export function absoluteTime(at: number): string {
  return `${toWallClock(at).replace('T', ' ')} ${zoneName(at)}`
}

const DAYS = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })

/** `21 Nov`. */
export function formatDay(at: number): string {
  return DAYS.format(Date.parse(`${toWallClock(at)}Z`))
}

/** `14:30`. */
export function formatTimeOfDay(at: number): string {
  return toWallClock(at).slice(11, 16)
}

/** `21 Nov 14:30`. */
export function formatMoment(at: number): string {
  return `${formatDay(at)} ${formatTimeOfDay(at)}`
}

/** `0.8 ms`, `80 ms`, `1.89 s`. */
export function duration(ms: number): string {
  if (ms < 10) return `${Math.round(ms * 10) / 10} ms`
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toPrecision(3)} s`
}

/** A percentile of durations that were counted in bins: `over 10 s` in the last bin. */
export function percentileDuration(ms: number): string {
  return ms < LAST_BIN_FROM_MS ? duration(ms) : `over ${LAST_BIN_FROM_MS / 1_000} s`
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
  if (size < 1_024) return `${size} bytes`
  const kib = size / 1_024
  return kib < 1_024 ? `${kib.toFixed(1)} KiB` : `${(kib / 1_024).toFixed(1)} MiB`
}
