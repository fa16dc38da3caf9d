import { resources } from '../../generated/resources.ts'
import type { User } from '../../records/users.ts'
import { canManageWebhooks, isOwner, isOwnerOrAdmin } from './page.ts'
import { plural } from './records/labels.ts'
import { canViewResource, resourcePath } from './records/resources.ts'

export interface NavigationItem {
  label: string
  /** Below /console, or a path that begins with /docs. */
  to: string
  icon: string
  badge?: NavigationBadge
}

/** `to`: see `NavigationItem`. */
export function hrefOf(to: string): string {
  return to.startsWith('/docs') ? to : `/console${to}`
}

export interface NavigationBadge {
  /** The ID of the badge's element, which open pages reload. */
  id: string
  count: number
  /** The word after the count, for screen readers. */
  label: string
}

interface NavigationGroup {
  title?: string
  items: NavigationItem[]
}

export const TROUBLED_WEBHOOKS_ID = 'troubled-webhooks'

export function troubledWebhooks(count: number): NavigationBadge {
  return { id: TROUBLED_WEBHOOKS_ID, count, label: 'failing' }
}

export function navigation(user: User, troubledWebhookCount: number): NavigationGroup[] {
  const groups: NavigationGroup[] = [
    { items: [{ label: 'Overview', to: '', icon: 'overview' }] },
    { title: 'Developers', items: developerItems(user, troubledWebhookCount) },
    { title: 'Records', items: recordItems(user) },
    { title: 'Account', items: accountItems(user) },
  ]
  return groups.filter(({ items }) => items.length > 0)
}

function developerItems(user: User, troubledWebhookCount: number): NavigationItem[] {
  const documentation = { label: 'Documentation', to: '/docs/', icon: 'docs' }
  if (!isOwnerOrAdmin(user)) return [documentation]
  const badge = troubledWebhooks(troubledWebhookCount)
  return [
    { label: 'API requests', to: '/requests', icon: 'requests' },
    { label: 'Events', to: '/events', icon: 'events' },
    { label: 'Deliveries', to: '/deliveries', icon: 'send' },
    { label: 'Webhooks', to: '/webhooks', icon: 'webhook', badge },
    { label: 'API keys', to: '/api-keys', icon: 'key' },
    documentation,
  ]
}

function recordItems(user: User): NavigationItem[] {
  return resources
    .filter((resource) => canViewResource(user, resource))
    .map((resource) => ({
      label: plural(resource),
      to: resourcePath(resource),
      icon: resource.slug,
    }))
}

function accountItems(user: User): NavigationItem[] {
  const notifications = canManageWebhooks(user)
    ? [{ label: 'Notifications', to: '/notifications', icon: 'bell' }]
    : []
  if (!isOwner(user)) return notifications
  return [
    ...notifications,
    { label: 'People', to: '/people', icon: 'people' },
    { label: 'Audit log', to: '/audit-log', icon: 'audit' },
    { label: 'Settings', to: '/settings', icon: 'settings' },
  ]
}
