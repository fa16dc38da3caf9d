/** What is said of many requests: figures, a chart, and what there is most of. */
import { HOUR_MS, MINUTE_MS } from '../../../records/reports/request-counts.ts'
import type { Bucket, Traffic } from '../../../records/reports/traffic.ts'
import { type Html, html } from '../../shared/html.ts'
import { meter, type Series, sparkline, stackedBars } from '../charts.ts'
import { card, count, counted, duration, empty, stats, table } from '../ui.ts'
import { operationName, operationOf, statusOf } from './request.ts'
import { requestsAddress } from './request-query.ts'

const errorsOf = ({
  clientErrors,
  serverErrors,
}: Pick<Bucket, 'clientErrors' | 'serverErrors'>): number => clientErrors + serverErrors

export function strip(traffic: Traffic, width: number): Html {
  const { buckets, requests, clientErrors, serverErrors, durations } = traffic
  return stats([
    {
      label: 'Requests',
      value: count(requests),
      note: requests > 0 ? `${perMinute(traffic, width)} a minute` : '',
      chart: requests > 0 && sparkline(buckets.map((bucket) => bucket.ok + errorsOf(bucket))),
    },
    {
      label: 'Errors',
      value: shareOf(errorsOf(traffic), requests),
      note: requests > 0 ? counted(clientErrors + serverErrors, 'request') : '',
      chart: errorsOf(traffic) > 0 && sparkline(buckets.map(errorsOf)),
    },
    {
      label: 'Median time',
      value: durations ? duration(durations.p50) : '–',
      note: durations ? 'half took less' : '',
    },
    {
      label: '95 % took less than',
      value: durations ? duration(durations.p95) : '–',
      note: durations ? `99 %: ${duration(durations.p99)}` : '',
    },
  ])
}

/** Over all of the time. */
function perMinute({ requests, buckets }: Traffic, width: number): string {
  const rate = requests / ((buckets.length * width) / MINUTE_MS)
  return rate < 0.1
    ? 'less than 0.1'
    : count(rate < 10 ? Math.round(rate * 10) / 10 : Math.round(rate))
}

/** Nothing is not said of a little, nor all of nearly all. */
export function shareOf(part: number, all: number): string {
  if (all === 0) return '–'
  const percent = (part / all) * 100
  if (part > 0 && percent < 0.01) return '<\u00a00.01\u00a0%'
  if (part < all && percent > 99.99) return '>\u00a099.99\u00a0%'
  return `${percent.toFixed(percent === 0 || percent === 100 ? 0 : 2)}\u00a0%`
}

export function outcomeSeries(buckets: Bucket[]): Series[] {
  return [
    { name: 'Success', tone: 'first', values: buckets.map(({ ok }) => ok) },
    {
      name: 'Client error',
      tone: 'second',
      values: buckets.map(({ clientErrors }) => clientErrors),
    },
    {
      name: 'Server error',
      tone: 'third',
      values: buckets.map(({ serverErrors }) => serverErrors),
    },
  ]
}

export function chart({ buckets }: Traffic, width: number): Html {
  const title = `Requests ${perBucket(width)}`
  const bars = stackedBars({
    title,
    startsAt: buckets.map(({ startsAt }) => startsAt),
    width,
    series: outcomeSeries(buckets),
  })
  return card(title, bars)
}

const SHOWN_TOP = 6

/** What is asked most, and what fails most. Each leads to its requests. */
export function tops(traffic: Traffic, given: Record<string, string>): Html {
  const to = (change: Record<string, string>): string => `/console${requestsAddress(given, change)}`
  const failed = traffic.operations
    .filter(({ status }) => status >= 400)
    .sort((one, other) => other.requests - one.requests)
    .slice(0, SHOWN_TOP)
  return html`<div class="halves">${card(
    'Top operations',
    table(
      ['Operation', { label: 'Requests', isNumber: true }, { label: 'Errors', isNumber: true }],
      topOperations(traffic).map(({ operationId, requests, errors }) => ({
        cells: [
          html`${operationLink(operationId, to({ operation: operationId ?? '' }))}${meter(requests / traffic.requests, 'first')}`,
          count(requests),
          shareOf(errors, requests),
        ],
      })),
      { label: 'Top operations' },
    ),
  )}${card(
    'Top errors',
    failed.length === 0
      ? empty('No errors', 'Every request of this time was answered with success.')
      : table(
          ['Answer', { label: 'Requests', isNumber: true }],
          failed.map(({ operationId, status, requests }) => ({
            cells: [
              operationLink(
                operationId,
                to({ operation: operationId ?? '', status: String(status) }),
                statusOf(status),
              ),
              count(requests),
            ],
          })),
          { label: 'Top errors' },
        ),
  )}</div>`
}

function operationLink(operationId: string | null, address: string, before?: Html): Html {
  const operation = operationOf(operationId)
  return operation
    ? html`<a class="mono operation" href="${address}">${before}${operationName(operation)}</a>`
    : html`${before}<span class="muted">Another address</span>`
}

function topOperations({
  operations: counts,
}: Traffic): { operationId: string | null; requests: number; errors: number }[] {
  return [...Map.groupBy(counts, ({ operationId }) => operationId)]
    .map(([operationId, own]) => ({
      operationId,
      requests: own.reduce((sum, { requests }) => sum + requests, 0),
      errors: own.reduce((sum, { requests, status }) => sum + (status >= 400 ? requests : 0), 0),
    }))
    .sort((one, other) => other.requests - one.requests)
    .slice(0, SHOWN_TOP)
}

/** `per minute`, `per 15 minutes`. */
function perBucket(width: number): string {
  const [length, unit] = width < HOUR_MS ? [width / MINUTE_MS, 'minute'] : [width / HOUR_MS, 'hour']
  return length === 1 ? `per ${unit}` : `per ${length} ${unit}s`
}
