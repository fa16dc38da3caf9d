import { findOwner } from '../../records/users.ts'
import { type Html, html } from '../shared/html.ts'
import type { Visit } from './page.ts'
import { note } from './ui.ts'

/** Shown to Admins on pages that only the Account Owner's grant lets them change. */
export async function readOnlyNote(
  { scope }: Pick<Visit, 'scope'>,
  things: 'API keys' | 'webhooks',
): Promise<Html> {
  const owner = await findOwner(scope)
  return note(
    'busy',
    html`You can view ${things} but not change them. To get access, ask ${owner?.fullName}, the Account Owner:
<a href="mailto:${owner?.email}">${owner?.email}</a>.`,
  )
}
