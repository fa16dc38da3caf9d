/** SVG charts. Horizontal positions and widths are in percent, because charts are as wide as their
 *  page. Vertical positions and heights are in pixels. */
import { toLinkTime } from '../shared/date-time-input.ts'
import { type Content, type Html, html } from '../shared/html.ts'
import { toWallClock } from '../shared/zone.ts'
import { DAY, MINUTE } from './client/times.js'
import { count, formatDay, formatMoment, formatTimeOfDay, timeLabel } from './format.ts'
import { numberColumn, table } from './ui.ts'

type ChartTone = 'first' | 'second' | 'third'

export interface Series {
  name: string
  tone: ChartTone
  /** One value per bucket. */
  values: number[]
}

interface StackedBars {
  title: string
  /** The start of each bucket in epoch milliseconds, ascending. */
  startsAt: number[]
  /** The length of a bucket. */
  bucketMs: number
  /** Bottom to top. */
  series: Series[]
  /** The path of what a bar counts, below /console. `from` and `until` are those of the bucket, for a link. */
  to?(from: string, until: string): string
}

const PLOT_HEIGHT = 180
/** Space above the bars: small values are drawn at least 2 px high, so a stack can be higher than
 *  `PLOT_HEIGHT`. */
const TOP = 8
const BOTTOM = TOP + PLOT_HEIGHT
const CHART_HEIGHT = BOTTOM + 24
const SMALL_HEIGHT = 28

/** Stacked bars over time, with a legend and a table of the same values. */
export function stackedBars(chart: StackedBars): Html {
  const { title, series } = chart
  const ticks = ticksUpTo(Math.max(0, ...totalsOf(series)))
  const highest = ticks.at(-1) ?? 1
  const yOf = (value: number): number => BOTTOM - (value / highest) * PLOT_HEIGHT
  const scale = ticks.map(
    (tick) => html`<text x="38" y="${yOf(tick) + 4}" text-anchor="end">${compact(tick)}</text>`,
  )
  const label = labelOf(title, series)
  return html`<div class="chart">
    ${legend(series)}
    <div class="chart-area">
      <svg width="46" height="${CHART_HEIGHT}" aria-hidden="true">${scale}</svg>
      <svg
        class="chart-plot"
        width="100%"
        height="${CHART_HEIGHT}"
        role="${chart.to ? 'group' : 'img'}"
        aria-label="${label}"
      >
        <g class="lines">${ticks.map((tick) => horizontalLine(yOf(tick)))}</g>
        ${tooltips(chart)}
        ${stacks(series, { highest, height: PLOT_HEIGHT, bottom: BOTTOM })}
        ${timeLabels(chart)}
      </svg>
    </div>
    ${chartTable(chart)}
  </div>`
}

function labelOf(title: string, series: Series[]): string {
  const sums = series.map(({ name, values }) => `${name}: ${count(sum(values))}`).join(', ')
  return `${title}. ${sums}. All figures are in the table below.`
}

/** An invisible area for each bucket, with a link to what it counts. console.js shows `data-tip` of
 *  the area under the pointer. For the keyboard, the table has the same links. */
function tooltips(chart: StackedBars): Html[] {
  const { startsAt, bucketMs, series } = chart
  const bucketPercent = 100 / startsAt.length
  return startsAt.map((start, index) => {
    const values = series.map(({ name, values }) => `${name} ${count(values[index] ?? 0)}`)
    const area = html`<rect
      class="hit"
      data-tip="${[formatSpan(start, bucketMs), ...values].join('\n')}"
      x="${percent(bucketPercent * index)}"
      y="0"
      width="${percent(bucketPercent)}"
      height="${BOTTOM}"/>`
    const href = bucketLink(chart, start)
    return href ? html`<a href="${href}" tabindex="-1" aria-hidden="true">${area}</a>` : area
  })
}

function bucketLink({ bucketMs, to }: StackedBars, start: number): string | undefined {
  return to && `/console${to(toLinkTime(start), toLinkTime(start + bucketMs))}`
}

function timeLabels({ startsAt, bucketMs }: StackedBars): Html[] {
  const bucketPercent = 100 / startsAt.length
  return chooseLabels(startsAt, bucketMs).map(
    ({ index, text }) => html`<text
      x="${percent(bucketPercent * (index + 0.5))}"
      y="${BOTTOM + 18}"
      text-anchor="middle"
    >${text}</text>`,
  )
}

/** Stacked bars for a table cell. `label` is the tooltip and the text for screen readers. */
export function smallBars(series: Series[], label: string): Html {
  const highest = Math.max(1, ...totalsOf(series))
  return html`<svg
    class="bars"
    width="100%"
    height="${SMALL_HEIGHT}"
    role="img"
    aria-label="${label}"
  >
    <title>${label}</title>
    ${horizontalLine(SMALL_HEIGHT - 0.5)}
    ${stacks(series, { highest, height: SMALL_HEIGHT - 4, bottom: SMALL_HEIGHT })}
  </svg>`
}

interface Plot {
  /** The value of a bar as high as the plot. */
  highest: number
  /** In pixels, like `bottom`. */
  height: number
  bottom: number
}

function stacks(series: Series[], { highest, height, bottom }: Plot): Content {
  const bucketPercent = 100 / (series[0]?.values.length ?? 1)
  return totalsOf(series).map((_, index) => {
    let y = bottom
    return series.map(({ tone, values }) => {
      const value = values[index] ?? 0
      if (value === 0) return false
      // Small values stay visible.
      const partHeight = Math.max(2, (value / highest) * height)
      y -= partHeight
      return html`<rect
        class="${tone}"
        x="${percent(bucketPercent * (index + 0.14))}"
        y="${round(y)}"
        width="${percent(bucketPercent * 0.72)}"
        height="${round(partHeight)}"
        rx="1.5"/>`
    })
  })
}

function totalsOf(series: Series[]): number[] {
  const [first] = series
  return (first?.values ?? []).map((_, index) =>
    sum(series.map(({ values }) => values[index] ?? 0)),
  )
}

function horizontalLine(y: number): Html {
  return html`<line x1="0" x2="100%" y1="${y}" y2="${y}"/>`
}

function legend(series: Series[]): Html {
  const items = series.map(
    ({ name, tone, values }) =>
      html`<li><i class="${tone}"></i>${name} <strong>${count(sum(values))}</strong></li>`,
  )
  return html`<ul class="legend">${items}</ul>`
}

/** A table of the buckets that are not zero. */
function chartTable(chart: StackedBars): Html {
  const { title, startsAt, series } = chart
  const totals = totalsOf(series)
  const columns = [timeLabel('Time'), ...series.map(({ name }) => numberColumn(name))]
  const rows = startsAt
    .map((start, index) => ({
      cells: [bucketName(chart, start), ...series.map(({ values }) => count(values[index] ?? 0))],
    }))
    .filter((_, index) => totals[index] !== 0)
  const none = html`<p class="muted">No data in this period.</p>`
  return html`<details class="as-table">
    <summary>Show as table</summary>
    ${rows.length === 0 ? none : table(title, columns, rows)}
  </details>`
}

function bucketName(chart: StackedBars, start: number): Content {
  const href = bucketLink(chart, start)
  const span = formatSpan(start, chart.bucketMs)
  return href ? html`<a href="${href}">${span}</a>` : span
}

/** A line without a scale. Hidden from screen readers; the text beside it has the values. */
export function sparkline(values: number[]): Html {
  const highest = Math.max(...values, 1)
  const step = 100 / Math.max(1, values.length - 1)
  const points = values
    .map((value, index) => `${round(step * index)},${round(27 - (value / highest) * 25)}`)
    .join(' ')
  return html`<svg
    class="sparkline"
    viewBox="0 0 100 28"
    preserveAspectRatio="none"
    aria-hidden="true"
  >
    <polygon points="0,28 ${points} 100,28"/>
    <polyline points="${points}"/>
  </svg>`
}

/** A bar for a share from 0 to 1. Hidden from screen readers; the text beside it has the value. */
export function meter(share: number, tone: ChartTone): Html {
  const width = percent(Math.min(1, share) * 100)
  return html`<svg class="meter" width="100%" height="6" aria-hidden="true">
    <rect width="100%" height="6" rx="3"/>
    <rect class="${tone}" width="${width}" height="6" rx="3"/>
  </svg>`
}

const NEAR_LIMIT = 0.8

/** A `meter` for the used share of a limit. Its colour warns near the limit and at the limit. */
export function limitMeter(share: number, isReached: boolean): Html {
  if (share < NEAR_LIMIT) return meter(share, 'first')
  return meter(share, isReached ? 'third' : 'second')
}

export function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
const round = (value: number): number => Math.round(value * 100) / 100
const percent = (value: number): string => `${Math.round(value * 1_000) / 1_000}%`

/** `950`, `12.5k`, `3M`. */
function compact(value: number): string {
  return value < 10_000
    ? count(value)
    : value.toLocaleString('en', { notation: 'compact' }).replace('K', 'k')
}

/** At most five round whole numbers. The first is 0, and the last is at least `highest`. */
function ticksUpTo(highest: number): number[] {
  const smallestStep = Math.max(1, highest / 4)
  const power = 10 ** Math.floor(Math.log10(smallestStep))
  const factor = [1, 2, 2.5, 5, 10].find((one) => one * power >= smallestStep) ?? 10
  const step = Math.ceil(factor * power)
  const ticks = [0, step]
  while ((ticks.at(-1) ?? 0) < highest) ticks.push(ticks.length * step)
  return ticks
}

const LABEL_STEPS = [5, 10, 15, 30, 60, 120, 180, 240, 360, 720, 1440].map(
  (minutes) => minutes * MINUTE,
)
const MOST_LABELS = 6

/** Round times, few enough to be read on a narrow screen, and the indexes of their buckets. */
function chooseLabels(startsAt: number[], bucketMs: number): { index: number; text: string }[] {
  const [first = 0] = startsAt
  const length = startsAt.length * bucketMs
  const wholeDays = Math.ceil(length / DAY / MOST_LABELS) * DAY
  const step =
    LABEL_STEPS.find((one) => one >= bucketMs && length / one <= MOST_LABELS) ?? wholeDays
  const labels: { index: number; text: string }[] = []
  const offsetMs = Date.parse(`${toWallClock(first)}Z`) - first
  const firstLabel = Math.ceil((first + offsetMs) / step) * step - offsetMs
  for (let at = firstLabel; at < first + length; at += step) {
    const index = Math.floor((at - first) / bucketMs)
    // Leave out a label at an edge of the chart: the edge would cut off half of it.
    if (index / startsAt.length > 0.02 && index / startsAt.length < 0.98)
      labels.push({ index, text: step < DAY ? formatTimeOrDay(at) : formatDay(at) })
  }
  return labels
}

/** `14:30`, or at midnight `21 Nov`. */
function formatTimeOrDay(at: number): string {
  const time = formatTimeOfDay(at)
  return time === '00:00' ? formatDay(at) : time
}

/** `21 Nov 14:30` for up to a minute, `21 Nov 14:00–14:15` for less than a day, and
 *  `21 Nov 09:00–23 Nov 09:00` for a longer time. */
function formatSpan(start: number, lengthMs: number): string {
  const begin = formatMoment(start)
  if (lengthMs <= MINUTE) return begin
  const end = start + lengthMs
  return `${begin}–${lengthMs < DAY ? formatTimeOfDay(end) : formatMoment(end)}`
}
