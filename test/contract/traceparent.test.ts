/** The header `traceparent`, from the request to the deliveries of its events. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Client, startApp, type TestApp } from '../helpers.ts'
import { type ReceivedRequest, type Receiver, startReceiver } from '../receiver.ts'
import { subscribe } from './subscribe.ts'

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const PARENT_ID = 'b7ad6b7169203331'
const VALID = `00-${TRACE_ID}-${PARENT_ID}-01`

const logLines: { msg: string; path: string; trace_id?: string }[] = []
let app: TestApp
let receiver: Receiver
let client: Client

beforeAll(async () => {
  // The first attempt of each delivery fails, and the second follows at once.
  const seen = new Set<string>()
  receiver = await startReceiver({
    answers({ headers }) {
      const id = String(headers['webhook-id'])
      const isRepeated = seen.has(id)
      seen.add(id)
      return isRepeated ? 204 : 500
    },
  })
  app = await startApp({
    role: 'all',
    environment: { WEBHOOK_RETRY_DELAYS: '0,0,0,0,0,0,0,0,0' },
    logLevel: 'info',
    logTo: { write: (line) => void logLines.push(JSON.parse(line)) },
  })
  const account = await app.newAccount()
  await subscribe(app, account, receiver.url)
  client = app.as(account)
})
afterAll(async () => {
  await app?.[Symbol.asyncDispose]()
  await receiver?.close()
})

/** Creates a participant. Returns both attempts of the delivery of its event. */
async function create(traceparent?: string): Promise<[ReceivedRequest, ReceivedRequest]> {
  const before = receiver.requests.length
  const headers: Record<string, string> = traceparent === undefined ? {} : { traceparent }
  expect((await client.post('/participants', { full_name: 'Ada' }, headers)).status).toBe(201)
  const requests = await receiver.received(before + 2)
  return requests.slice(before) as [ReceivedRequest, ReceivedRequest]
}

function readHeader({ headers }: ReceivedRequest) {
  const [version, traceId, parentId, flags] = String(headers.traceparent).split('-')
  return { version, traceId, parentId, flags }
}

test('both attempts have the trace of the request, and parent IDs of their own', async () => {
  const [first, second] = await create(VALID)
  expect(readHeader(first)).toMatchObject({ version: '00', traceId: TRACE_ID, flags: '01' })
  expect(readHeader(second)).toMatchObject({ version: '00', traceId: TRACE_ID, flags: '01' })
  const parentIds = [PARENT_ID, readHeader(first).parentId, readHeader(second).parentId]
  expect(new Set(parentIds).size).toBe(3)
  expect(second.body).toEqual(first.body)
  expect(second.headers['x-service-signature']).toBe(first.headers['x-service-signature'])
})

test('the log line of the request has the trace ID', async () => {
  const traceId = TRACE_ID.replaceAll('0', 'e')
  await client.get('/participants', { traceparent: `00-${traceId}-${PARENT_ID}-00` })
  expect(logLines.find((line) => line.trace_id === traceId)).toMatchObject({
    msg: 'Request completed',
    path: '/public/v1/participants',
  })
})

// W3C Trace Context §3.2.2, §3.2.3 and §4.3.
const accepted = [
  { name: 'not sampled', given: `00-${TRACE_ID}-${PARENT_ID}-00`, flags: '00' },
  { name: 'unknown flags', given: `00-${TRACE_ID}-${PARENT_ID}-fe`, flags: '00' },
  { name: 'a later version', given: `01-${TRACE_ID}-${PARENT_ID}-01`, flags: '01' },
  {
    name: 'a later version with another field',
    given: `cc-${TRACE_ID}-${PARENT_ID}-01-what`,
    flags: '01',
  },
]
test.each(accepted)(
  '$name → the trace continues, with the flags $flags',
  async ({ given, flags }) => {
    const [first] = await create(given)
    expect(readHeader(first)).toMatchObject({ version: '00', traceId: TRACE_ID, flags })
  },
)

const ignored = [
  { name: 'no header', given: undefined },
  { name: 'an empty header', given: '' },
  { name: 'version ff', given: `ff-${TRACE_ID}-${PARENT_ID}-01` },
  { name: 'upper-case letters', given: VALID.toUpperCase() },
  { name: 'a trace ID of zeros', given: `00-${'0'.repeat(32)}-${PARENT_ID}-01` },
  { name: 'a parent ID of zeros', given: `00-${TRACE_ID}-${'0'.repeat(16)}-01` },
  { name: 'one character too few', given: VALID.slice(0, -1) },
  { name: 'version 00 with another field', given: `${VALID}-what` },
  { name: 'two headers', given: `${VALID}, ${VALID}` },
]
test.each(ignored)('$name → a new trace with the ID of the event', async ({ given }) => {
  const [first, second] = await create(given)
  const eventId = String(first.headers['x-event-id']).replaceAll('-', '')
  for (const attempt of [first, second])
    expect(readHeader(attempt)).toMatchObject({ version: '00', traceId: eventId, flags: '01' })
})
