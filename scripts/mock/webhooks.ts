/** The webhook of a mock: asyncapi.yaml says which headers a delivery has, and how it is signed. */
import { randomBytes } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import type { Contract } from '../model/contract.ts'
import type { EventMessage } from '../model/events.ts'
import type { Operation } from '../model/operations.ts'
import { isObject } from '../model/source.ts'
import {
  type Delivery,
  type DeliveryHeader,
  listDeliveryHeaders,
  signDelivery,
} from '../words/deliveries.ts'
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
  return await Promise.all(
    // The mock changes only this record, so there are no events about other records.
    listOwnEvents(contract, operation, change).map(async (event) => {
      const delivery = newDelivery(contract, { event, record, secret, traceparent })
      const { method, headers, body } = delivery
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

function newDelivery(
  contract: Contract,
  {
    event,
    record,
    secret,
    traceparent,
  }: { event: EventMessage; record: Json; secret: string; traceparent: string },
): Delivery {
  const payload = payloadOf(event, record)
  const ids = { payload: payload.id, event: uuidv7() }
  const delivery: Delivery = { method: 'POST', headers: {}, body: JSON.stringify(payload) }
  const headers = listDeliveryHeaders(contract)
  for (const header of headers)
    if (!header['x-signature'])
      delivery.headers[header.name] = headerValue(header, ids, traceparent)
  // Signatures come last, because they cover other headers.
  for (const { name, 'x-signature': words } of headers)
    if (words) delivery.headers[name] = signDelivery(words, secret, delivery)
  return delivery
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

function headerValue(
  header: DeliveryHeader & { const?: unknown },
  ids: { payload: string; event: string },
  traceparent: string,
): string {
  if (header.const !== undefined) return String(header.const)
  if (header['x-equals']) return header['x-equals'].startsWith('event') ? ids.event : ids.payload
  if (header['x-time-of']) return String(Math.floor(Date.now() / 1000))
  return header['x-trace-of'] ? newTrace(traceparent) : ''
}

/** W3C Trace Context: the trace of the request, or a new one, with a new parent ID for the
 *  delivery. */
function newTrace(traceparent: string): string {
  const [, trace = randomBytes(16).toString('hex'), flags = '00'] =
    /^00-([0-9a-f]{32})-[0-9a-f]{16}-(0[01])$/.exec(traceparent) ?? []
  return `00-${trace}-${randomBytes(8).toString('hex')}-${flags}`
}
