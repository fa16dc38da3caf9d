/** The webhook of a mock: asyncapi.yaml says which headers a delivery has, and how it is signed. */
import { v7 as uuidv7 } from 'uuid'
import type { Contract } from '../model/contract.ts'
import type { EventMessage } from '../model/events.ts'
import type { Operation } from '../model/operations.ts'
import { isObject } from '../model/source.ts'
import { buildDelivery, listDeliveryHeaders } from '../words/deliveries.ts'
import { listOwnEvents } from '../words/events.ts'
import type { Change } from './records.ts'
import type { Json } from './values.ts'

export interface MockWebhook {
  url: string
  secret: string
}

/** The only attempt of a delivery. */
export interface MockAttempt {
  /** The event type. */
  event: string
  /** Null: there was no response. */
  status: number | null
}

const TIMEOUT_MS = 15_000

/** Delivers each event of the change, with one attempt. */
export async function deliverEvents(
  contract: Contract,
  { url, secret }: MockWebhook,
  { operation, change, traceparent }: { operation: Operation; change: Change; traceparent: string },
): Promise<MockAttempt[]> {
  const record = change.after ?? change.before ?? {}
  const declared = listDeliveryHeaders(contract)
  return await Promise.all(
    // The mock changes only this record, so there are no events about other records.
    listOwnEvents(contract, operation, change).map(async (event) => {
      const payload = payloadOf(event, record)
      const { method, headers, body } = buildDelivery(declared, {
        id: payload.id,
        eventId: uuidv7(),
        body: JSON.stringify(payload),
        secret,
        at: new Date(),
        traceparent,
      })
      const signal = AbortSignal.timeout(TIMEOUT_MS)
      const status = await fetch(url, { method, headers, body, signal, redirect: 'manual' })
        .then(async (response) => {
          await response.body?.cancel()
          return response.status
        })
        .catch(() => null)
      return { event: event.type, status }
    }),
  )
}

/** The example payload with a new ID, and with the ID and the fields of the record. */
function payloadOf({ example }: EventMessage, record: Json): Json & { id: string } {
  const { data, resource, ...rest } = example as Json
  return {
    ...rest,
    id: uuidv7(),
    resource: { ...(resource as Json), id: record.id },
    data: isObject(data) && !Array.isArray(data) ? fillData(data, record) : data,
  }
}

function fillData(data: Json, record: Json): Json {
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) => [name, name in record ? record[name] : value]),
  )
}
