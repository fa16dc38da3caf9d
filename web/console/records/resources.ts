/** The resources of the contract, and the permissions of users on them. */
import { type Resource, resources } from '../../../generated/resources.ts'
import type { User } from '../../../records/users.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { type Access, type ConsolePage, hasPermission } from '../page.ts'
import { label, plural } from './labels.ts'
import { wordingOf } from './wording.ts'

/** A record as the API shows it. */
export type Item = Record<string, unknown> & { id: string }

type Action = 'create' | 'update' | 'delete'

export function findResource(slug: string | undefined): Resource | undefined {
  return resources.find((resource) => resource.slug === slug)
}

/** `participant_id` → the resource of participants. */
export function referencedResource(name: string): Resource | undefined {
  return name.endsWith('_id') ? resources.find(({ type }) => `${type}_id` === name) : undefined
}

/** `participant_id` → `Participant`, `due_at` → `Due`. */
export function fieldLabel(name: string): string {
  return wordingOf(name).label ?? label(referencedResource(name)?.type ?? name)
}

/** `value`: a value of the field `resource` of exports, for example `job_applications`. */
export function resourceByOption(value: unknown): Resource | undefined {
  return resources.find(({ slug }) => slug.replaceAll('-', '_') === value)
}

/** The inverse of `resourceByOption`. */
export function optionOf({ slug }: Resource): string {
  return slug.replaceAll('-', '_')
}

/** Whether the options are resources, as in the `resource` of an export. */
export function isResourceChoice({ schema: { enum: options } }: { schema: Schema }): boolean {
  return options?.every((value) => resourceByOption(value) !== undefined) ?? false
}

export function canViewResource(user: User, { module }: Resource): boolean {
  return hasPermission(user, module, 'read')
}

export function canPerform(user: User, { module, operations }: Resource, action: Action): boolean {
  return operations[action] !== null && hasPermission(user, module, 'write')
}

/** Whether the user may create exports of these records. */
export function canExport(user: User, resource: Resource): boolean {
  const exports = findResource('exports')
  return (
    exports !== undefined &&
    canPerform(user, exports, 'create') &&
    canViewResource(user, resource) &&
    (exports.creation?.properties?.resource?.enum ?? []).includes(optionOf(resource))
  )
}

/** The access to a page whose path has the slug of a resource. */
export const accessTo =
  (allows: (user: User, resource: Resource) => boolean): Access =>
  (user, { resource: slug }) => {
    const resource = findResource(slug)
    return resource !== undefined && allows(user, resource)
  }

export const canViewRecords = accessTo(canViewResource)

export const canChangeRecords = (action: Action): Access =>
  accessTo((user, resource) => canPerform(user, resource, action))

export const canDownloadFile = accessTo(
  (user, resource) => resource.operations.file !== null && canViewResource(user, resource),
)

/** The field with a record's name: the first field that is required on creation and is a text
 *  without a format or an enum, and never null. Payments and applications have none. */
export function nameField({ record, creation }: Resource): string | undefined {
  return Object.entries(record.properties ?? {}).find(
    ([name, schema]) =>
      schema.type === 'string' &&
      !schema.format &&
      !schema.enum &&
      !schema.nullable &&
      creation?.required?.includes(name),
  )?.[0]
}

export function recordFields({ record }: Resource): [name: string, schema: Schema][] {
  return Object.entries(record.properties ?? {})
}

/** Whether people have a better filter: the search, and `after` and `before`. */
export function isForPrograms({ name }: Pick<Resource['filters'][number], 'name'>): boolean {
  return name === 'id' || /_(from|until)$/.test(name)
}

/** The path of a page, relative to /console. */
export function resourcePath(
  { slug }: Resource,
  id?: string,
  action?: 'edit' | 'set-status' | 'delete' | 'file',
): string {
  return ['/records', slug, id, action].filter(Boolean).join('/')
}

export function recordLink(resource: Resource, id: string, content: Content, style = ''): Html {
  const path = `/console${resourcePath(resource, id)}`
  return html`<a${style && html` class="${style}"`} href="${path}">${content}</a>`
}

export function recordCrumbs(
  resource: Resource,
  record?: { id: string; title: string },
): ConsolePage['crumbs'] {
  return [
    { label: plural(resource), to: resourcePath(resource) },
    ...(record ? [{ label: record.title, to: resourcePath(resource, record.id) }] : []),
  ]
}
