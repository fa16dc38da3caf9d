import { v7 as uuidv7 } from 'uuid'
import { unescapeHtml } from './forms.ts'
import type { WebhookAdmin } from './hooks.ts'

const HOUR_MS = 3_600_000

export interface Stored {
  hoursAgo: number
  state?: string
  type?: string
  eventId?: string
}

/** Stores deliveries as the engine leaves them. Returns their IDs in the same order. */
export async function store(
  admin: WebhookAdmin,
  webhookId: string,
  given: Stored[],
): Promise<string[]> {
  const rows = given.map(
    ({ hoursAgo, state = 'delivered', type = 'task.created', eventId = null }) => {
      const at = Math.round(Date.now() - hoursAgo * HOUR_MS)
      const times = { created_at: at, updated_at: at }
      return {
        id: uuidv7({ msecs: at }),
        webhook_id: webhookId,
        event_id: eventId,
        event_type: type,
        body: Buffer.from('{}'),
        state,
        attempts: 0,
        ...times,
      }
    },
  )
  await admin.write((own) => own.insert('deliveries', rows))
  return rows.map(({ id }) => id)
}

/** The IDs of the deliveries on a page. */
export const listed = (page: string): string[] =>
  [...page.matchAll(/<tbody id="delivery-([\w-]+)"/g)].map(([, id = '']) => id)

/** The path of a link below /console. */
export function linkIn(page: string, label: string): string | undefined {
  const [, href] =
    [...page.matchAll(/<a\b[^>]*href="([^"]*)"[^>]*>([^<]*)<\/a>/g)].find(
      ([, , text]) => text === label,
    ) ?? []
  return href && unescapeHtml(href).replace(/^\/console/, '')
}

/** The text of a code block by its label. */
export const blockIn = (page: string, name: string): string => {
  const [, code = ''] =
    new RegExp(`<pre[^>]*aria-label="${name}"><code>([\\s\\S]*?)</code>`).exec(page) ?? []
  return unescapeHtml(code.replace(/<[^>]*>/g, ''))
}
