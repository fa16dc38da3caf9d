/** The next steps of a record: buttons on its page, for the statuses that can follow its status. */
import { InvalidInput, StatusError } from '../../../errors.ts'
import type { Resource } from '../../../generated/resources.ts'
import type { User } from '../../../records/users.ts'
import { type Html, html } from '../../shared/html.ts'
import { type PageResult, redirect, type Visit } from '../page.ts'
import { actionForm, confirmButton } from '../ui.ts'
import { toneOf } from './cells.ts'
import { VERSION_FIELD } from './edit-record.ts'
import { errorText, noun, option } from './labels.ts'
import { canPerform, type Item, resourcePath } from './resources.ts'

/** The verbs of statuses, where there is a better one than `Mark as paid`. */
const VERBS: Record<string, (noun: string) => string> = {
  in_progress: () => 'Start',
  completed: () => 'Complete',
  cancelled: (noun) => `Cancel ${noun}`,
  closed: (noun) => `Close ${noun}`,
  shortlisted: () => 'Shortlist',
  accepted: () => 'Accept',
  rejected: () => 'Reject',
}

function labelOf(resource: Resource, status: string): string {
  return VERBS[status]?.(noun(resource)) ?? `Mark as ${option(status).toLowerCase()}`
}

/** Statuses that people aim for come first. */
const TONES_IN_ORDER = ['ok', 'busy']

/** A status that no other can follow asks for a confirmation. */
export function statusButtons(user: User, resource: Resource, item: Item, title: string): Html[] {
  const following = resource.nextStatuses ?? {}
  if (!canPerform(user, resource, 'update')) return []
  const placeOf = (status: string): number => (TONES_IN_ORDER.indexOf(toneOf(status)) + 3) % 3
  const next = (following[String(item.status)] ?? []).toSorted(
    (one, other) => placeOf(one) - placeOf(other),
  )
  return next.map((status, index) => {
    const label = labelOf(resource, status)
    const style = index === 0 && TONES_IN_ORDER.includes(toneOf(status)) ? 'primary' : ''
    const sendButton = (style: 'primary' | ''): Html =>
      actionForm({
        to: resourcePath(resource, item.id, 'set-status'),
        label,
        style,
        fields: { status, [VERSION_FIELD]: String(item.updated_at) },
      })
    if (following[status]?.length) return sendButton(style)
    return confirmButton(label, {
      title: `${label}?`,
      text: html`${title}. “${option(status)}” is final: the status cannot change afterwards.`,
      body: sendButton('primary'),
      openStyle: style,
    })
  })
}

export async function setRecordStatus(
  { ctx, form, call }: Visit,
  resource: Resource,
  item: Item,
): Promise<PageResult> {
  const { update } = resource.operations
  if (update === null) return ctx.throw(404)
  const status = form.get('status') ?? ''
  const to = resourcePath(resource, item.id)
  const done = redirect(to, `Status set to ${option(status)}.`)
  // The form was sent before, and its response got lost.
  if (item.status === status) return done
  try {
    await call(update, {
      path: { [resource.idParameter]: item.id },
      body: { status },
      updatedAt: form.get(VERSION_FIELD) ?? undefined,
    })
    return done
  } catch (error) {
    if (error instanceof InvalidInput) return redirect(to, errorText(error), 'bad')
    if (error instanceof StatusError && error.status === 412)
      return redirect(
        to,
        'Someone else has updated this record, so its status is not set. Review it, then try again.',
        'bad',
      )
    throw error
  }
}
