/** How the health of a webhook is shown. */
import type { DeliveryHealth } from '../../../records/reports/delivery-health.ts'
import type { Webhook } from '../../../records/webhooks.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { count } from '../format.ts'
import { bars, pill } from '../ui.ts'

export function webhookState({ enabled }: Webhook): Html {
  return enabled ? pill('ok', 'Enabled') : pill('quiet', 'Disabled')
}

/** One bar per hour. */
export function healthBars({ hours }: DeliveryHealth): Html {
  const total = (state: 'delivered' | 'failed' | 'waiting'): string =>
    count(hours.reduce((sum, hour) => sum + hour[state], 0))
  const label = [
    `By hour: ${total('delivered')} delivered`,
    `${total('failed')} failed`,
    `${total('waiting')} waiting`,
  ].join(', ')
  return bars(
    hours.map(({ delivered, failed, waiting }) => [
      { tone: 'ok', value: delivered },
      { tone: 'warn', value: waiting },
      { tone: 'bad', value: failed },
    ]),
    label,
  )
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
