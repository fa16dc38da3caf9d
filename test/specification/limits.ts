import type { Section } from './section.ts'

const SCHEDULE = [
  'test/webhooks/schedule.test.ts > attempt $number fails: the next attempt after $want ms',
  'test/webhooks/exact.test.ts > ten attempts at the specified times, over restarts and clock jumps, then failed',
]
const REAL_TIME =
  'test/webhooks/response-status.test.ts > by default a response within 15 seconds is a success; later, the attempt fails and the next one follows after 5 seconds'
const ENVELOPE =
  'test/contract/list-envelope.test.ts > the envelope has data and the five fields of meta, by default of page 1 with 25 records'

export const limits: Section = {
  title: '§8 Limits',
  rows: [
    {
      quote:
        '| Request rate | 60 requests per minute per API key owner | All public API requests. Keys created by the same user share the limit. Excess requests get 429 |',
      tests: [
        'test/contract/rate-limit.test.ts > by default each user has 60 requests per minute, over all their keys and all requests',
        'test/contract/every-request.test.ts > with a valid key: counts against the limit, says so in headers, and is in the dashboard',
        'test/contract/nodes.test.ts > count the requests of a user together, and refuse a revoked key immediately',
      ],
    },
    {
      quote: '| Page size | 1 to 100, default 25 | List endpoints, `page[size]` |',
      tests: [ENVELOPE, 'test/contract/list-envelope.test.ts > page[size] is 1 to 100'],
    },
    { quote: '| Default page number | 1 | List endpoints |', tests: [ENVELOPE] },
    {
      quote: '| Webhook response time | 15 seconds | Subscriber endpoint |',
      tests: [REAL_TIME],
    },
    {
      quote: '| Webhook attempts | 10 per delivery | Each delivery |',
      tests: [
        'test/webhooks/attempts.test.ts > ten failures: the delivery has failed, and nothing more is sent',
        'test/webhooks/schedule.test.ts > attempt 10 fails: the delivery has failed',
      ],
    },
    { quote: 'Webhook attempt schedule: 1. Initial attempt.', tests: SCHEDULE },
    {
      quote: '2. Two quick retries, each after a 5-second delay.',
      tests: [...SCHEDULE, REAL_TIME],
    },
    {
      quote:
        '3. Seven scheduled attempts, after delays of 1 minute, 5 minutes, 30 minutes, 2 hours, 5 hours, 10 hours and 24 hours.',
      tests: SCHEDULE,
    },
    {
      quote:
        'Clients must honour the response headers on 429, wait before retrying and avoid large bursts.',
      tests: [
        'test/contract/rate-limit.test.ts > all keys of a user share the limit → headers with the rest, then 429 with Retry-After',
        'test/client/client.test.ts > wait for Retry-After of a %i, and send the same body and Idempotency-Key',
        'test/client/client.test.ts > know Retry-After of the rate limit of the service',
      ],
    },
    { quote: 'Names of the rate-limit response headers: not shown.', tests: [] },
  ],
}
