import type { Section } from './section.ts'

const CREATED =
  'test/webhooks/payload.test.ts > a new $type: the event identifies the record, contains nothing else of it, and data is an empty array'
const APPLICATION_CREATED =
  'test/webhooks/payload.test.ts > job_application.created: data.screening_outcome is $outcome, also after the answers have changed'
const TEN_ATTEMPTS =
  'test/webhooks/attempts.test.ts > ten failures: the delivery has failed, and nothing more is sent'

export const events: Section = {
  title: '§6 Events',
  rows: [
    {
      quote:
        'A webhook delivery is an HTTP POST with a JSON body when a subscribed event occurs. The payload shape is in part 2.',
      tests: [
        CREATED,
        'test/webhooks/payload.test.ts > an event without a subscription: no request',
      ],
    },
    { quote: '| participant.created | participant | empty array |', tests: [CREATED] },
    { quote: '| task.created | task | empty array |', tests: [CREATED] },
    {
      quote: '| job_application.created | job_application | object with `screening_outcome` |',
      tests: [APPLICATION_CREATED],
    },
    {
      quote:
        'The values `participant.created`, `task.created` and `job_application.created` are the event types given.',
      tests: [
        CREATED,
        APPLICATION_CREATED,
        'test/handlers/events.test.ts > → the catalogue of asyncapi.yaml',
      ],
    },
    {
      quote: 'The full list of event types, and which operations emit them: not shown.',
      tests: [],
    },
    {
      quote:
        'Delivery rules: 1. A delivery succeeds when the endpoint returns any 2xx status within 15 seconds.',
      tests: [
        'test/webhooks/response-status.test.ts > %i: delivered, and no more attempts',
        'test/webhooks/response-status.test.ts > by default a response within 15 seconds is a success; later, the attempt fails and the next one follows after 5 seconds',
        'test/webhooks/hostile-timeouts.test.ts > 200 and $what: delivered with one attempt',
      ],
    },
    {
      quote:
        '2. A retry follows when the endpoint is unreachable, times out, or returns a non-2xx status.',
      tests: [
        'test/webhooks/response-status.test.ts > %i: a retry follows',
        'test/webhooks/attempts.test.ts > $name: a failed attempt that says why, and a retry',
        'test/webhooks/hostile.test.ts > a name that does not exist: unreachable',
      ],
    },
    {
      quote: 'A timeout counts as a failed attempt.',
      tests: [
        'test/webhooks/attempts.test.ts > $name: a failed attempt that says why, and a retry',
        'test/webhooks/hostile-timeouts.test.ts > no status: the attempt ends at its deadline',
      ],
    },
    {
      quote: '3. There are at most 10 attempts per delivery; the schedule is in Limits.',
      tests: [TEN_ATTEMPTS],
    },
    {
      quote: '4. After all attempts fail, the delivery is marked Failed.',
      tests: [TEN_ATTEMPTS],
    },
    {
      quote: '5. Retries keep the delivery `id`.',
      tests: [
        'test/webhooks/attempts.test.ts > failures, then success: retries with the same ID and bytes',
      ],
    },
    {
      quote: '6. Queue processing can make an attempt run later than its scheduled delay.',
      tests: [
        'test/webhooks/restarts.test.ts > a start makes attempts that were scheduled without an engine, and keeps the times of retries',
      ],
    },
  ],
}
