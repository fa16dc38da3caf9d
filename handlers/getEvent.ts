import { assertFound } from '../errors.ts'
import { type Event, findEvent } from '../records/events.ts'
import type { Call } from './call.ts'

export async function getEvent(call: Call<'getEvent'>): Promise<Event> {
  const event = await findEvent(call.scope, call.path.event)
  assertFound(event, 'event')
  return event
}
