/** Figures of many requests: totals, a chart, and the most frequent operations. */
import type { Bucket, Traffic } from '../../../records/reports/traffic.ts'
import { HOUR_MS, MINUTE_MS } from '../../../records/time-units.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { meter, type Series, sparkline, stackedBars, sum } from '../charts.ts'
import { count, counted, percentileDuration } from '../format.ts'
import { card, numberColumn, type Stat, stats, table } from '../ui.ts'
import { requestsPath } from './request-query.ts'
import { lookUpOperation, operationName } from './request-row.ts'

type ErrorCounts = Pick<Bucket, 'clientErrors' | 'serverErrors'>

function countErrors({ clientErrors, serverErrors }: ErrorCounts): number {
  return clientErrors + serverErrors
}

/** The number of requests and the share of errors. Each note is shown below its figure. */
export function requestStats(
  traffic: Traffic,
  notes: { requests: Content; errors: Content },
): Stat[] {
  const { buckets, requests } = traffic
  const errors = countErrors(traffic)
  return [
    {
      label: 'Requests',
      value: count(requests),
      note: requests > 0 && notes.requests,
      chart: requests > 0 && sparkline(buckets.map((bucket) => bucket.ok + countErrors(bucket))),
    },
    {
      label: 'Errors',
      value: formatPercent(errors, requests),
      note: requests > 0 && notes.errors,
      chart: errors > 0 && sparkline(buckets.map(countErrors)),
    },
  ]
}

export function trafficStats(traffic: Traffic, bucketMs: number): Html {
  const { durations } = traffic
  return stats([
    ...requestStats(traffic, {
      requests: `${requestRate(traffic, bucketMs)} per minute`,
      errors: counted(countErrors(traffic), 'request'),
    }),
    { label: 'Median duration', value: durations ? percentileDuration(durations.p50) : '–' },
    {
      label: 'p95 duration',
      value: durations ? percentileDuration(durations.p95) : '–',
      note: durations && `p99 ${percentileDuration(durations.p99)}`,
    },
  ])
}

function requestRate({ requests, buckets }: Traffic, bucketMs: number): string {
  const rate = requests / ((buckets.length * bucketMs) / MINUTE_MS)
  if (rate < 0.1) return '<\u00a00.1'
  return count(rate < 10 ? Math.round(rate * 10) / 10 : Math.round(rate))
}

/** `25 %`, `12.5 %`. 0 % only if `part` is 0, and 100 % only if `part` is `all`. `–` if `all` is 0. */
export function formatPercent(part: number, all: number): string {
  if (all === 0) return '–'
  const percent = (part / all) * 100
  if (part > 0 && percent < 0.1) return '<\u00a00.1\u00a0%'
  if (part < all && percent > 99.9) return '>\u00a099.9\u00a0%'
  return `${Math.round(percent * 10) / 10}\u00a0%`
}

/** `input`: the filters of the requests, to which the bars lead. */
export function requestBars(
  title: string,
  { buckets }: Traffic,
  bucketMs: number,
  input: Record<string, string>,
): Html {
  const series = (name: string, tone: Series['tone'], field: 'ok' | keyof ErrorCounts): Series => ({
    name,
    tone,
    values: buckets.map((bucket) => bucket[field]),
  })
  return stackedBars({
    title,
    startsAt: buckets.map(({ startsAt }) => startsAt),
    bucketMs,
    to: (from, until) => requestsPath(input, { range: '', from, until }),
    series: [
      series('Success', 'first', 'ok'),
      series('Client error', 'second', 'clientErrors'),
      series('Server error', 'third', 'serverErrors'),
    ],
  })
}

export function trafficChart(
  traffic: Traffic,
  bucketMs: number,
  input: Record<string, string>,
): Html {
  const title = `Requests ${formatInterval(bucketMs)}`
  return card(title, requestBars(title, traffic, bucketMs, input))
}

/** `per minute`, `per 15 minutes`. */
function formatInterval(ms: number): string {
  const [length, unit] = ms < HOUR_MS ? [ms / MINUTE_MS, 'minute'] : [ms / HOUR_MS, 'hour']
  return length === 1 ? `per ${unit}` : `per ${length} ${unit}s`
}

const MAX_TOP_ROWS = 6

/** The card with the most frequent operations. Each links to its requests, except unknown paths. */
export function topOperations(traffic: Traffic, input: Record<string, string>): Html {
  const rows = sumByOperation(traffic)
    .slice(0, MAX_TOP_ROWS)
    .map(({ operationId, requests, errors }) => ({
      cells: [
        [operationLink(operationId, input), meter(requests / traffic.requests, 'first')],
        count(requests),
        formatPercent(errors, requests),
      ],
    }))
  const columns = ['Operation', numberColumn('Requests'), numberColumn('Errors')]
  return card('Top operations', table('Top operations', columns, rows))
}

function operationLink(operationId: string | null, input: Record<string, string>): Html {
  const operation = lookUpOperation(operationId)
  if (!operation) return html`<span class="muted">Unknown path</span>`
  const path = requestsPath(input, { operation: operationId ?? '' })
  return html`<a class="mono operation" href="/console${path}">${operationName(operation)}</a>`
}

interface OperationSums {
  operationId: string | null
  requests: number
  errors: number
}

/** The most frequent operations first. */
function sumByOperation({ operations }: Traffic): OperationSums[] {
  return [...Map.groupBy(operations, ({ operationId }) => operationId)]
    .map(([operationId, counts]) => ({
      operationId,
      requests: sum(counts.map(({ requests }) => requests)),
      errors: sum(counts.map(({ status, requests }) => (status >= 400 ? requests : 0))),
    }))
    .sort((one, other) => other.requests - one.requests)
}
