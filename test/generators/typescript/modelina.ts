/** Reads a delivery with the models that @asyncapi/modelina generated, and reports what it saw as
 *  JSON. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type Webhook from './generated/modelina/Webhook'

const event: Webhook = JSON.parse(readFileSync('../contracts/delivery.json', 'utf8'))

// The type of the event decides the types of its resource and data.
assert(event.event_type === 'participant.created')
const resource_type: 'participant' = event.resource.type
console.log(
  JSON.stringify({ event_type: event.event_type, resource_type, data: event.data.length }),
)
