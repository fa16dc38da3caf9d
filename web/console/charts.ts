/** SVG charts. The content security policy forbids inline styles, so x is in percent and y in pixels. */
import { type Content, type Html, html } from '../shared/html.ts'
import { count } from './format.ts'
import { table } from './ui.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

export type ChartTone = 'first' | 'second' | 'third'

export interface Series {
  name: string
  tone: ChartTone
  /** One value per bucket. */
  values: number[]
}

export interface StackedBars {
  title: string
  /** The start of each bucket in epoch milliseconds, ascending. */
  startsAt: number[]
  /** The length of a bucket in milliseconds. */
  width: number
  /** Bottom to top. */
  series: Series[]
}

const PLOT_HEIGHT = 180
/** Space above the bars, because small values are drawn higher than they are. */
const TOP = 8
const LABELS_HEIGHT = 24
const CHART_HEIGHT = TOP + PLOT_HEIGHT + LABELS_HEIGHT
const LEAST_HEIGHT = 2

/** Stacked bars over time, with a legend and a table of the same values. */
export function stackedBars({ title, startsAt, width, series }: StackedBars): Html {
  const totals = startsAt.map((_, index) =>
    series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0),
  )
  const ticks = ticksUpTo(Math.max(...totals, 0))
  const top = ticks.at(-1) ?? 1
  const yOf = (value: number): number => TOP + PLOT_HEIGHT - (value / top) * PLOT_HEIGHT
  const slot = 100 / startsAt.length
  const sums = series.map(({ name, values }) => `${name}: ${count(total(values))}`).join(', ')
  const label = `${title}. ${sums}. All figures are in the table below.`

  const lines = ticks.map(
    (tick) => html`<line x1="0" x2="100%" y1="${yOf(tick)}" y2="${yOf(tick)}"/>`,
  )
  const bars = startsAt.map((start, index) => {
    const tip = [
      spanOf(start, width),
      ...series.map(({ name, values }) => `${name} ${count(values[index] ?? 0)}`),
    ].join('\n')
    return html`<rect
  class="hit"
  data-tip="${tip}"
  x="${percent(slot * index)}"
  y="0"
  width="${percent(slot)}"
  height="${TOP + PLOT_HEIGHT}"/>
${parts(index)}`
  })
  const times = labelsOf(startsAt, width).map(
    ({ index, text }) => html`<text
  x="${percent(slot * (index + 0.5))}"
  y="${TOP + PLOT_HEIGHT + 18}"
  text-anchor="middle"
>${text}</text>`,
  )

  function parts(index: number): Content {
    let below = 0
    return series.map(({ tone, values }) => {
      const value = values[index] ?? 0
      if (value === 0) return false
      const height = Math.max(LEAST_HEIGHT, (value / top) * PLOT_HEIGHT)
      below += height
      return html`<rect
  class="${tone}"
  x="${percent(slot * (index + 0.14))}"
  y="${round(TOP + PLOT_HEIGHT - below)}"
  width="${percent(slot * 0.72)}"
  height="${round(height)}"
  rx="1.5"/>`
    })
  }

  const scale = ticks.map(
    (tick) => html`<text x="38" y="${yOf(tick) + 4}" text-anchor="end">${compact(tick)}</text>`,
  )
  const buckets = startsAt
    .map((start, index) => ({ start, index }))
    .filter(({ index }) => totals[index] !== 0)
  return html`<div class="chart">
${legend(series)}
<div class="chart-area">
<svg class="chart-scale" width="46" height="${CHART_HEIGHT}" aria-hidden="true">${scale}</svg>
<svg class="chart-plot" width="100%" height="${CHART_HEIGHT}" role="img" aria-label="${label}">
<g class="lines">${lines}</g>
${bars}
${times}
</svg>
</div>
${asTable(title, buckets, width, series)}
</div>`
}

function legend(series: Series[]): Html {
  const items = series.map(({ name, tone, values }) => {
    const sum = html`<strong>${count(total(values))}</strong>`
    return html`<li><i class="${tone}"></i>${name} ${sum}</li>`
  })
  return html`<ul class="legend">${items}</ul>`
}

/** A table of the buckets that are not zero. */
function asTable(
  title: string,
  rows: { start: number; index: number }[],
  width: number,
  series: Series[],
): Html {
  return html`<details class="as-table"><summary>Show as table</summary>${
    rows.length === 0
      ? html`<p class="muted">No data in this period.</p>`
      : table(
          ['Time (UTC)', ...series.map(({ name }) => ({ label: name, isNumber: true }))],
          rows.map(({ start, index }) => ({
            cells: [spanOf(start, width), ...series.map(({ values }) => count(values[index] ?? 0))],
          })),
          { label: title },
        )
  }</details>`
}

/** A line without a scale. Hidden from screen readers; the text beside it has the values. */
export function sparkline(values: number[]): Html {
  const top = Math.max(...values, 1)
  const step = 100 / Math.max(1, values.length - 1)
  const points = values
    .map((value, index) => `${round(step * index)},${round(27 - (value / top) * 25)}`)
    .join(' ')
  return html`<svg class="sparkline" viewBox="0 0 100 28" preserveAspectRatio="none" aria-hidden="true">
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

const total = (values: number[]): number => values.reduce((sum, value) => sum + value, 0)
const round = (value: number): number => Math.round(value * 100) / 100
const percent = (value: number): string => `${Math.round(value * 1_000) / 1_000}%`

/** `950`, `12.5k`, `3M`. */
function compact(value: number): string {
  return value < 10_000
    ? count(value)
    : value.toLocaleString('en', { notation: 'compact' }).replace('K', 'k')
}

/** Round numbers from 0 up to at least `highest`. */
function ticksUpTo(highest: number): number[] {
  const rough = Math.max(1, highest) / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = Math.max(
    1,
    ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power,
  )
  const whole = Number.isInteger(step) ? step : Math.ceil(step)
  return Array.from(
    { length: Math.max(1, Math.ceil(highest / whole)) + 1 },
    (_, index) => index * whole,
  )
}

const LABEL_STEPS = [
  5 * MINUTE,
  10 * MINUTE,
  15 * MINUTE,
  30 * MINUTE,
  HOUR,
  2 * HOUR,
  3 * HOUR,
  4 * HOUR,
  6 * HOUR,
  12 * HOUR,
  DAY,
]
const MOST_LABELS = 6

/** Round times, few enough to be read on a narrow screen. */
function labelsOf(startsAt: number[], width: number): { index: number; text: string }[] {
  const [first = 0] = startsAt
  const length = startsAt.length * width
  const days = Math.ceil(length / DAY / MOST_LABELS)
  const step = LABEL_STEPS.find((one) => one >= width && length / one <= MOST_LABELS) ?? days * DAY
  const labels: { index: number; text: string }[] = []
  for (let at = Math.ceil(first / step) * step; at < first + length; at += step) {
    const index = Math.floor((at - first) / width)
    // The edge would cut off half of the label.
    if (index / startsAt.length > 0.02 && index / startsAt.length < 0.98)
      labels.push({ index, text: step < DAY ? hourOf(at) : dayOf(at) })
  }
  return labels
}

const DAYS = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })

/** `21 Nov`. */
function dayOf(at: number): string {
  return DAYS.format(at)
}

/** `14:30`, or the date at midnight. */
function hourOf(at: number): string {
  return at % DAY === 0 ? dayOf(at) : timeOfDay(at)
}

function timeOfDay(at: number): string {
  return new Date(at).toISOString().slice(11, 16)
}

/** `21 Nov 14:30`, or `21 Nov 14:00–14:15`. */
export function spanOf(start: number, width: number): string {
  const begins = `${dayOf(start)} ${timeOfDay(start)}`
  return width <= MINUTE ? begins : `${begins}–${timeOfDay(start + width)}`
}
