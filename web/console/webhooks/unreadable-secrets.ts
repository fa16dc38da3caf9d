/** Webhooks whose signing secrets or headers cannot be read: their deliveries are paused. */
import { listEnabledSecrets } from '../../../records/webhook-secrets.ts'
import { openSecret, SecretUnreadable } from '../../../webhooks/transport/secret.ts'
import { type Html, html } from '../../shared/html.ts'
import type { Visit } from '../page.ts'
import { buttonLink } from '../ui.ts'

/** The IDs of the enabled webhooks whose current secret, or a header, cannot be read. */
export async function findUnreadableSecrets({ scope, config }: Visit): Promise<Set<string>> {
  const sealedById = await listEnabledSecrets(scope)
  const isUnreadable = ([id, secrets]: [string, string[]]): boolean => {
    try {
      for (const sealed of secrets) openSecret(config.secretKeys, id, sealed)
      return false
    } catch (error) {
      if (error instanceof SecretUnreadable) return true
      throw error
    }
  }
  return new Set([...sealedById].filter(isUnreadable).map(([id]) => id))
}

export function unreadableSecretNote(webhookId: string, canManage: boolean): Html {
  return html`<div class="note warn note-with-action">
    <span>
      Deliveries are paused: the signing secret or a header cannot be read. No delivery is lost.
      Rotate the secret and enter the headers again to resume.
    </span>
    ${canManage && buttonLink(`/webhooks/${webhookId}/secret`, 'Rotate the secret')}
  </div>`
}
