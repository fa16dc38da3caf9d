import type { Section } from './section.ts'

const ORDER = 'test/contract/order-of-checks.test.ts > $fails: $status'

/** Sentences of openapi.yaml about what the specification leaves open: the order of checks and
 *  further statuses. */
export const beyond: Section = {
  title: 'Beyond the specification: the order of checks and further statuses',
  rows: [
    {
      quote: '1. the API key: 401 (without a valid key, an unknown path gets 404)',
      tests: [
        ORDER,
        'test/contract/every-request.test.ts > without a valid key: 401 for a known path with any method, 404 for an unknown path',
      ],
    },
    {
      quote: '2. the rate limit and the requests in progress: 429',
      tests: [
        'test/contract/order-of-checks.test.ts > 2. a request above the rate limit: 429, unless it has no valid key',
        'test/contract/requests-in-flight.test.ts > a request above the limit waits for two seconds, and then gets 429',
      ],
    },
    {
      quote:
        '3. the URL: 400 if it cannot be decoded, 414 if it is longer than 8 KiB, 404 if the path is unknown, 405 with `Allow` if the path does not support the method',
      tests: [
        ORDER,
        'test/contract/paths.test.ts > a known path and another method → 405 with Allow',
      ],
    },
    { quote: '4. permissions: 403', tests: [ORDER] },
    { quote: '5. the format of the body: 415, 413, 400', tests: [ORDER] },
    { quote: '6. the content of the request: 422', tests: [ORDER] },
    {
      quote: '7. the record: 404',
      tests: [
        ORDER,
        'test/contract/order-of-checks.test.ts > 7. a stale version of a record: 412, after its body is checked',
      ],
    },
    {
      quote: 'You have the current version. The response has no body.',
      tests: [
        'test/contract/responses.test.ts > If-None-Match with the version, also weak, in a list or * → 304 without a body',
      ],
    },
    {
      quote: 'The URL or the body cannot be parsed, for example because the JSON is invalid.',
      tests: [ORDER],
    },
    {
      quote:
        'An earlier request with the same `Idempotency-Key` is still in progress after one second.',
      tests: [
        'test/contract/idempotency.test.ts > a repeat of a request that takes longer than a second → 409 with Retry-After',
      ],
    },
    {
      quote: 'The export is not completed yet.',
      tests: ['test/handlers/exports.test.ts > 409 while the export is queued or processing'],
    },
    {
      quote: 'The file of the export has expired.',
      tests: [
        'test/handlers/exports.test.ts > 410 after 7 days; an hour later the file is deleted and the record remains',
      ],
    },
    {
      quote: 'The record has changed since the version in `If-Match`.',
      tests: [
        'test/handlers/records.test.ts > If-Match with another or an unknown version → 412, and no change',
      ],
    },
    { quote: 'The body is larger than 1 MiB.', tests: [ORDER] },
    { quote: 'The `Content-Type` is not JSON in UTF-8.', tests: [ORDER] },
  ],
}
