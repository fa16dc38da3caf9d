import { findOwner } from '../../records/users.ts'
import { type Html, html } from '../shared/html.ts'
import type { Visit } from './page.ts'
import { note } from './ui.ts'

/** A note for Admins who lack the grant to change `things`. */
export async function readOnlyNote(
  { scope }: Pick<Visit, 'scope'>,
  things: 'API keys' | 'webhooks',
): Promise<Html> {
  const owner = await findOwner(scope)
  const link = html`<a href="mailto:${owner?.email}">${owner?.email}</a>`
  return note('busy', [
    `You can view ${things} but not change them. `,
    html`To get access, ask ${owner?.fullName}, the Account Owner: ${link}.`,
  ])
}
