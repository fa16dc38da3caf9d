/** Spans of OpenTelemetry, for an operator who has installed an SDK. */
import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { expect, test } from 'vitest'
import { subscribe } from '../contract/subscribe.ts'
import { startApp, until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { recordSpans } from './spans.ts'

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const PARENT_ID = 'b7ad6b7169203331'

test('a request and the attempts that follow from it are spans of one trace', async () => {
  using spans = recordSpans()
  await using receiver = await startReceiver({ answers: [500, 204] })
  const lines: { trace_id?: string; path?: string }[] = []
  await using app = await startApp({
    role: 'all',
    environment: { WEBHOOK_RETRY_DELAYS: '0,0,0,0,0,0,0,0,0' },
    logLevel: 'info',
    logTo: { write: (line) => void lines.push(JSON.parse(line)) },
  })
  const account = await app.newAccount()
  const webhookId = await subscribe(app, account, receiver.url)
  const headers = { traceparent: `00-${TRACE_ID}-${PARENT_ID}-01` }
  await app.as(account).post('/participants', { full_name: 'Ada' }, headers)
  const received = await receiver.received(2)
  await until('the spans have ended', () => spans.ended.length === 3)

  const [request, ...attempts] = spans.ended
  expect(request).toMatchObject({
    name: 'createParticipant',
    kind: SpanKind.SERVER,
    traceId: TRACE_ID,
    parent: { spanId: PARENT_ID, isRemote: true },
    attributes: {
      'http.request.method': 'POST',
      'http.response.status_code': 201,
      'url.path': '/public/v1/participants',
      'muster.account.id': account.accountId,
    },
    status: undefined,
  })
  expect(attempts).toMatchObject([
    {
      attributes: {
        'http.response.status_code': 500,
        'muster.attempt.number': 1,
        'muster.attempt.outcome': 'http_error',
      },
      status: { code: SpanStatusCode.ERROR },
    },
    {
      attributes: {
        'http.response.status_code': 204,
        'muster.attempt.number': 2,
        'muster.attempt.outcome': 'success',
      },
      status: undefined,
    },
  ])
  for (const [index, attempt] of attempts.entries()) {
    expect(attempt).toMatchObject({
      name: 'webhook attempt',
      kind: SpanKind.CLIENT,
      traceId: TRACE_ID,
      parent: { spanId: request?.spanId },
      attributes: { 'muster.webhook.id': webhookId },
    })
    expect(received[index]?.headers.traceparent).toBe(`00-${TRACE_ID}-${attempt.spanId}-01`)
  }
  expect(lines.find(({ path }) => path === '/public/v1/participants')?.trace_id).toBe(TRACE_ID)
})

test('a request without traceparent begins a trace, which its deliveries continue', async () => {
  using spans = recordSpans()
  await using receiver = await startReceiver()
  await using app = await startApp({ role: 'all' })
  const account = await app.newAccount()
  await subscribe(app, account, receiver.url)
  await app.as(account).post('/participants', { full_name: 'Ada' })
  const [received] = await receiver.received(1)
  await until('the spans have ended', () => spans.ended.length === 2)
  const [request, attempt] = spans.ended
  expect(request?.parent).toBeUndefined()
  expect(attempt).toMatchObject({ traceId: request?.traceId, parent: { spanId: request?.spanId } })
  expect(received?.headers.traceparent).toBe(`00-${request?.traceId}-${attempt?.spanId}-01`)
})

test('requests for health, metrics and violations have no span; an unknown path gives the span its method as name', async () => {
  using spans = recordSpans()
  await using app = await startApp()
  for (const path of ['/healthz', '/readyz', '/metrics', '/violations', '/public/v1/nothing'])
    await app.call('GET', path)
  expect(spans.ended).toMatchObject([
    { name: 'GET', attributes: { 'http.response.status_code': 404 }, status: undefined },
  ])
})
