import type { Section } from './section.ts'

const SUCCESS = 'test/webhooks/response-status.test.ts > %i: delivered, and no more attempts'
const RETRY = 'test/webhooks/response-status.test.ts > %i: a retry follows'
const TEN_ATTEMPTS =
  'test/webhooks/attempts.test.ts > ten failures: the delivery has failed, and nothing more is sent'

export const states: Section = {
  title: '§3 States and transitions',
  rows: [
    {
      quote: 'States named: Delivered, Failed.',
      tests: [
        'test/webhooks/schedule.test.ts > progressAfter: the state of the delivery',
        'test/console/delivery-log.test.ts > filters by state, event, time and ID from the URL',
      ],
    },
    {
      quote:
        '| attempt in progress | endpoint returns a 2xx status | within 15 seconds | Delivered | No more attempts |',
      tests: [
        SUCCESS,
        'test/webhooks/response-status.test.ts > by default a response within 15 seconds is a success; later, the attempt fails and the next one follows after 5 seconds',
        'test/webhooks/hostile-timeouts.test.ts > 200 and $what: delivered with one attempt',
      ],
    },
    {
      quote:
        '| attempt in progress | endpoint unreachable, times out, or returns non-2xx | attempts remain (fewer than 10 made) | retry scheduled | Next attempt follows the schedule in Limits |',
      tests: [
        RETRY,
        'test/webhooks/attempts.test.ts > $name: a failed attempt that says why, and a retry',
        'test/webhooks/attempts.test.ts > connection refused: unreachable',
        'test/webhooks/schedule.test.ts > attempt $number fails: the next attempt after $want ms',
        'test/webhooks/exact.test.ts > ten attempts at the specified times, over restarts and clock jumps, then failed',
      ],
    },
    {
      quote: '| attempt in progress | the 10th attempt fails | all attempts used | Failed | |',
      tests: [
        TEN_ATTEMPTS,
        'test/webhooks/schedule.test.ts > attempt 10 fails: the delivery has failed',
        'test/webhooks/exact.test.ts > ten attempts at the specified times, over restarts and clock jumps, then failed',
      ],
    },
    {
      quote:
        '| Failed | manual retry from the webhook detail page | user action | a new delivery attempt | |',
      tests: [
        'test/console/deliveries.test.ts > offers each action in its state, makes the attempts, and writes the audit log',
        'test/webhooks/delivery-commands.test.ts > manual retry: one attempt outside the schedule; a success makes the delivery delivered',
      ],
    },
    {
      quote:
        '| Delivered | manual resend from the webhook detail page | user action | a new delivery attempt | |',
      tests: [
        'test/console/deliveries.test.ts > offers each action in its state, makes the attempts, and writes the audit log',
        'test/webhooks/delivery-commands.test.ts > manual resend: one attempt; the delivery stays delivered',
      ],
    },
    {
      quote: 'Other delivery states, and the state after a manual retry or resend: not shown.',
      tests: [],
    },
    {
      quote: 'A key is valid or revoked. A revoked key is rejected with 401.',
      tests: [
        'test/console/api-keys.test.ts > revokes a key: its requests fail with 401, it cannot be updated, and the Revoked tab lists it',
        'test/contract/keys.test.ts > a revoked key, or a deactivated user → 401 for the next request',
      ],
    },
    { quote: 'Other key states and the moves between them: not shown.', tests: [] },
    {
      quote: 'Participant has a `status` filter with the value `active`.',
      tests: ['test/contract/list-envelope.test.ts > listParticipants: filter[status]=active'],
    },
    { quote: 'Other statuses and transitions: not shown.', tests: [] },
  ],
}
