/** The pages and the actions that the search offers to a user. */
import { resources } from '../../../generated/resources.ts'
import type { User } from '../../../records/users.ts'
import { navigation } from '../navigation.ts'
import { canManageKeys, canManageWebhooks, isOwner, isOwnerOrAdmin } from '../page.ts'
import { canImport } from '../records/imports.ts'
import { noun } from '../records/labels.ts'
import { canPerform, resourcePath } from '../records/resources.ts'
import type { Match } from './match.ts'

export function destinations(user: User): Match[] {
  const pages = navigation(user, 0).flatMap(({ items }) => items)
  return [
    ...pages.map(({ label, to }) => ({ to, title: label, kind: 'Page' })),
    isOwnerOrAdmin(user) && { to: '/webhooks/jobs', title: 'Bulk jobs', kind: 'Page' },
    { to: '/me', title: 'Your profile', kind: 'Page' },
    ...actions(user).map(([title, to]) => ({ to, title, kind: 'Action' })),
  ].filter((match) => match !== false)
}

function actions(user: User): [title: string, to: string][] {
  const canCreate = resources.filter((resource) =>
    resource.slug === 'imports' ? canImport(user) : canPerform(user, resource, 'create'),
  )
  const creations = canCreate.map((resource): [string, string] => [
    `New ${noun(resource)}`,
    `${resourcePath(resource)}/new`,
  ])
  if (canManageWebhooks(user)) creations.push(['Create webhook', '/webhooks/new'])
  if (canManageKeys(user)) creations.push(['Create API key', '/api-keys/new'])
  if (isOwner(user)) creations.push(['Invite a teammate', '/people/invite'])
  return [...creations, ['Change your password', '/me/password']]
}
