/** How the health of a webhook is shown. */
import type { DeliveryHealth } from '../../../records/reports/delivery-health.ts'
import type { Webhook } from '../../../records/webhooks.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { type Series, smallBars, sum } from '../charts.ts'
import { count } from '../format.ts'
import { pill } from '../ui.ts'

export function webhookState({ enabled }: Webhook, isPaused: boolean): Html {
  if (isPaused) return pill('bad', 'Paused')
  return enabled ? pill('ok', 'Enabled') : pill('quiet', 'Disabled')
}

interface HourCounts {
  delivered: number
  waiting: number
  failed: number
}

export function deliverySeries(hours: HourCounts[]): Series[] {
  return [
    { name: 'Delivered', tone: 'first', values: hours.map(({ delivered }) => delivered) },
    { name: 'In progress', tone: 'second', values: hours.map(({ waiting }) => waiting) },
    { name: 'Failed', tone: 'third', values: hours.map(({ failed }) => failed) },
  ]
}

/** One bar per hour. */
export function healthBars({ hours }: DeliveryHealth): Html {
  const series = deliverySeries(hours)
  const totals = series.map(({ name, values }) => `${count(sum(values))} ${name.toLowerCase()}`)
  return smallBars(series, `By hour: ${totals.join(', ')}`)
}

/** The share of finished deliveries that were delivered. Rounded down: 100 % means all. */
export function deliveredShare({ share, isSample }: DeliveryHealth): Content {
  if (share === null) return html`<span class="muted">–</span>`
  return `${isSample ? '≈ ' : ''}${Math.floor(share * 1_000) / 10} %`
}

/** `1,000+` if counting stopped at the limit. */
export function limitedCount(value: number, limit: number): string {
  return value >= limit ? `${count(limit)}+` : count(value)
}
