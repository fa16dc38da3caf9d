import type { Section } from './section.ts'

const ENVELOPE =
  'test/contract/list-envelope.test.ts > the envelope has data and the five fields of meta, by default of page 1 with 25 records'
const PAGE_SIZE = 'test/contract/list-envelope.test.ts > page[size] is 1 to 100'
const SORT =
  'test/contract/list-envelope.test.ts > sort accepts the fields of meta.allowed_sorts, with and without -, and no others'
const ORDER = 'test/handlers/lists.test.ts > sort=%s → by code point, null last, equal values by ID'
const FILTER =
  'test/handlers/lists.test.ts > filter[$name] → the records that match, counted and in order'
const OTHER_FILTERS = 'test/contract/list-envelope.test.ts > filters of other lists are refused'
const PAYLOAD =
  'test/webhooks/payload.test.ts > a new $type: the event identifies the record, contains nothing else of it, and data is an empty array'
/** `check-receiver` passes a receiver that keeps the rules, and fails one for each broken rule. */
const RECEIVER_RULES = [
  'test/cli/check-receiver.test.ts > passes a correct receiver',
  'test/cli/check-receiver.test.ts > fails a receiver that $name',
]
/** The sample receivers of the guides, with deliveries of the service and with `check-receiver`. */
const SAMPLES =
  'test/docs/receivers.test.ts > processes each real delivery once and follows every rule of check-receiver'

export const endpoints: Section = {
  title: '§4 Endpoints',
  rows: [
    {
      quote: 'All endpoints require `Authorization: Bearer <API_KEY>`.',
      tests: ['test/contract/keys.test.ts > %s without a key → 401, before any other check'],
    },
    {
      quote: 'Send `Accept: application/json` so that errors come back as JSON.',
      tests: [
        'test/contract/order-of-checks.test.ts > $fails: $status',
        'test/contract/paths.test.ts > the unknown path %s → 404 as JSON, without a key',
        'test/contract/responses.test.ts > Accept: application/xml → JSON, with nosniff and private caching',
      ],
    },
    {
      quote:
        '| GET | `/public/v1/participants` | Query: `page[number]`, `page[size]`, `filter[...]`, `sort` (as below) | 200, list envelope with participant records |',
      tests: [ENVELOPE, FILTER, ORDER],
    },
    {
      quote:
        "| GET | `/public/v1/participants/{participant}` | Path parameter `{participant}` is the participant UUID | 200, the participant's current record; 404 if it does not exist or is not visible to the account |",
      tests: [
        'test/handlers/records.test.ts > each response agrees with the next read, and each change emits one event',
        'test/handlers/records.test.ts > an unknown ID, or one of another account → the same 404',
        'test/contract/paths.test.ts > a malformed ID (%s) → 404',
      ],
    },
    {
      quote:
        '| GET | `/public/v1/exports` | Query: `page[number]`, `page[size]`, `sort` (e.g. `created_at`, `-created_at`) | 200, list envelope with export records |',
      tests: [
        ENVELOPE,
        PAGE_SIZE,
        'test/contract/list-envelope.test.ts > listExports: sort=created_at and sort=-created_at',
      ],
    },
    {
      quote:
        'Complete list of endpoints, including create, update and delete operations: not shown.',
      tests: [],
    },
    { quote: 'Body of the single-participant response: not shown.', tests: [] },
    {
      quote:
        'Filter names and values per endpoint: not shown beyond `filter[status]` on participants.',
      tests: [],
    },
    {
      quote: '| `page[number]` | integer | 1 | Page to return |',
      tests: [
        ENVELOPE,
        'test/contract/list-envelope.test.ts > listParticipants: each page until current_page equals last_page has other records',
        'test/contract/query.test.ts > %s → 422 on %s',
      ],
    },
    {
      quote: '| `page[size]` | integer | 25 | Records per page. Allowed range 1 to 100 |',
      tests: [ENVELOPE, PAGE_SIZE],
    },
    {
      quote:
        '| `filter[<name>]` | string | none | Narrows the list. Some filters accept comma-separated options. Accepted names differ per endpoint |',
      tests: [
        FILTER,
        OTHER_FILTERS,
        'test/contract/tolerance.test.ts > a parameter with several values',
      ],
    },
    {
      quote:
        '| `sort` | string | none | A field from `meta.allowed_sorts`. A leading `-` means descending order. Some endpoints accept several comma-separated sorts |',
      tests: [
        SORT,
        ORDER,
        'test/handlers/lists.test.ts > no sort → ordered by creation',
        'test/handlers/lists.test.ts > several sorts → the first decides, then the next',
      ],
    },
    {
      quote:
        'Rules: 1. When a client wants the full result set, it increments `page[number]` until `meta.current_page` equals `meta.last_page`.',
      tests: [
        'test/contract/list-envelope.test.ts > listParticipants: each page until current_page equals last_page has other records',
        'test/handlers/lists.test.ts > pages of 2, sort=%s → every record once, in the same order',
        'test/client/client.test.ts > yield the records of all pages, filtered and sorted, and fetch each page once',
      ],
    },
    { quote: '2. Parameters available differ by endpoint.', tests: [OTHER_FILTERS, SORT] },
    {
      quote: '3. When `meta.allowed_sorts` is an empty array, the endpoint offers no sorting.',
      tests: [
        SORT,
        'test/handlers/events.test.ts > %s → 422, because the list has no sorts and filters',
      ],
    },
    {
      quote:
        '| POST | subscriber-defined | JSON body (delivery payload above); header `X-Service-Signature` | Any 2xx status within 15 seconds |',
      tests: [
        PAYLOAD,
        'test/webhooks/payload.test.ts > every event: one signed delivery with the fields of the payload and no others',
        'test/webhooks/response-status.test.ts > %i: delivered, and no more attempts',
      ],
    },
    {
      quote: 'The receiver must: 1. Accept POST requests with a JSON body.',
      tests: [...RECEIVER_RULES, SAMPLES],
    },
    {
      quote:
        '2. Verify the signature before trusting the request. When verification fails, the receiver answers 403 and processes nothing.',
      tests: [
        ...RECEIVER_RULES,
        SAMPLES,
        'test/cli/listen.test.ts > verifies and prints each delivery; responds 403 to a wrong signature',
      ],
    },
    {
      quote: '3. Return 2xx within 15 seconds, and queue longer work after acknowledging.',
      tests: [
        'test/cli/check-receiver.test.ts > fails a receiver that does not respond within 15 seconds',
        SAMPLES,
      ],
    },
    {
      quote: '4. Process the same delivery `id` more than once without duplicate changes.',
      tests: [
        ...RECEIVER_RULES,
        SAMPLES,
        'test/docs/catching-up.test.ts > processes each event once: several webhooks, an outage beyond all attempts, and late deliveries',
      ],
    },
    {
      quote:
        '5. Optionally fetch the current record with `resource.id`, for example `GET /public/v1/participants/{participant}` for a participant event.',
      tests: [PAYLOAD],
    },
  ],
}
