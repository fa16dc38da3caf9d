import type { Section } from './section.ts'

const SHAPE = 'test/contract/order-of-checks.test.ts > $fails: $status'
const FIELDS = 'test/contract/body.test.ts > several invalid fields → 422 names each'

export const errors: Section = {
  title: '§7 Errors',
  rows: [
    {
      quote:
        'Errors use HTTP status codes and a JSON body (`message`, and `errors` for validation failures).',
      tests: [SHAPE],
    },
    {
      quote: '| 200, 201, 204 | Success. 204 has no body |',
      tests: [
        'test/contract/responses.test.ts > create, read, delete → 201 with Location, the same record, 204 without a body, then 404',
        'test/contract/access-levels.test.ts > $slug: creates, reads, updates and deletes',
      ],
    },
    {
      quote: '| 401 Unauthorized | Missing, invalid or revoked API key |',
      tests: [
        'test/contract/keys.test.ts > %s → 401 with WWW-Authenticate',
        'test/contract/keys.test.ts > a revoked key, or a deactivated user → 401 for the next request',
      ],
    },
    {
      quote:
        '| 403 Forbidden | Key lacks permission for the action, including any create, update or delete made with a Read Only key |',
      tests: [
        'test/contract/access-levels.test.ts > %s: 403, and nothing changes',
        'test/contract/access-levels.test.ts > Finance: %s',
      ],
    },
    {
      // Sic: "The the service" stands where other texts say "The record".
      quote: '| 404 Not Found | The the service does not exist or is not visible to the account |',
      tests: [
        'test/handlers/records.test.ts > an unknown ID, or one of another account → the same 404',
        'test/handlers/isolation.test.ts > another account’s ID → the same 404 as an unknown ID, with every precondition header, and no change',
      ],
    },
    {
      quote:
        '| 422 Unprocessable Entity | Validation failed. The `errors` object maps field names to arrays of messages |',
      tests: [SHAPE, FIELDS],
    },
    {
      quote: '| 429 Too Many Requests | Rate limit exceeded |',
      tests: [
        'test/contract/rate-limit.test.ts > by default each user has 60 requests per minute, over all their keys and all requests',
        'test/contract/order-of-checks.test.ts > 2. a request above the rate limit: 429, unless it has no valid key',
      ],
    },
    {
      quote:
        'Shape of a validation error: `message` (string) and `errors` (object of field name to array of strings).',
      tests: [SHAPE, FIELDS],
    },
  ],
}
