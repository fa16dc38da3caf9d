import { assertFound } from '../errors.ts'
import { findEvent, type PublicEvent } from '../records/events.ts'
import type { Call } from './call.ts'

export async function getEvent(call: Call<'getEvent'>): Promise<PublicEvent> {
  const event = await findEvent(call.scope, call.path.event)
  assertFound(event, 'event')
  return event
}
