import { assertFound } from '../errors.ts'
import { findEvent, type PublicEvent } from '../records/events.ts'
import type { Call } from './call.ts'

/** Hides the changes of payments from users without the Finance permission. */
export async function getEvent(call: Call<'getEvent'>): Promise<PublicEvent> {
  const event = await findEvent(call.scope, call.path.event)
  assertFound(event, 'event')
  const isHidden = event.resource.type === 'payment' && call.caller.finance === 'none'
  return isHidden ? { ...event, changes: null } : event
}
