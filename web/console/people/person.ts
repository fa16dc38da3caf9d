/** A user of the account, as the People pages show them. */
import { listExpiries } from '../../../records/invitations.ts'
import { listJoinedIds } from '../../../records/passwords.ts'
import { listUsers, type User } from '../../../records/users.ts'
import type { Html } from '../../shared/html.ts'
import type { Visit } from '../page.ts'
import { pill } from '../ui.ts'

export const CRUMBS = [{ label: 'People', to: '/people' }]

export interface Person extends User {
  hasJoined: boolean
  /** Expiry of the user's one-time link, in epoch milliseconds. Undefined without a link. */
  linkExpiresAt: number | undefined
}

export async function listPeople({ scope }: Visit): Promise<Person[]> {
  const [users, joined, expiries] = await Promise.all([
    listUsers(scope),
    listJoinedIds(scope),
    listExpiries(scope),
  ])
  const joinedIds = new Set(joined)
  return users.map((user) => ({
    ...user,
    hasJoined: joinedIds.has(user.id),
    linkExpiresAt: expiries.get(user.id),
  }))
}

/** Loads the user whose ID is in the URL. Throws 404 if the account has no such user. */
export async function loadPerson(visit: Visit): Promise<Person> {
  const person = (await listPeople(visit)).find(({ id }) => id === visit.params.user)
  return person ?? visit.ctx.throw(404)
}

export function personStatus({ status, hasJoined, linkExpiresAt }: Person, now: Date): Html {
  if (status === 'deactivated') return pill('quiet', 'Deactivated')
  if (hasJoined) return pill('ok', 'Active')
  return linkExpiresAt !== undefined && linkExpiresAt > now.getTime()
    ? pill('busy', 'Invited')
    : pill('warn', 'Invitation expired')
}
