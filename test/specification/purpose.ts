import type { Section } from './section.ts'

export const purpose: Section = {
  title: '§1 What the service does',
  rows: [
    {
      quote:
        'This document covers the whole service: what it does, its records, states, endpoints, authentication, webhook events, errors, limits and versioning.',
      tests: [
        'test/specification.test.ts > the quotes are the whole specification, in its order',
        'test/contract/contract.test.ts > a running service: the contract holds, every cell was seen, and the test records are deleted',
      ],
    },
    {
      quote: 'The base address of the service is {base_url}.',
      tests: [
        'test/docs/site.test.ts > GET /%s: available to tools, and to browsers of all origins',
      ],
    },
    {
      quote: 'All public paths begin with `/public/v1`.',
      tests: ['test/contract/list-envelope.test.ts > every path begins with /public/v1'],
    },
    {
      quote:
        'The service is a management platform for participants, tasks, job applications and exports.',
      tests: [
        'test/contract/access-levels.test.ts > $slug: creates, reads, updates and deletes',
        'test/console/records.test.ts > is created, listed, updated and deleted by form, with the records, events and deliveries of the API',
      ],
    },
    {
      quote: 'It exposes a JSON HTTP API under `/public/v1` and sends webhook notifications.',
      tests: [
        'test/contract/list-envelope.test.ts > every path begins with /public/v1',
        'test/contract/responses.test.ts > Accept: application/xml → JSON, with nosniff and private caching',
        'test/webhooks/payload.test.ts > every event: one signed delivery with the fields of the payload and no others',
      ],
    },
    {
      quote: '- Clients call the API with an API key sent as a Bearer token.',
      tests: [
        'test/contract/access-levels.test.ts > $slug: creates, reads, updates and deletes',
        'test/contract/keys.test.ts > %s → 401 with WWW-Authenticate',
      ],
    },
    {
      quote: '- Each API key has an access level (Full Access or Read Only).',
      tests: [
        'test/contract/access-levels.test.ts > Full Access',
        'test/contract/access-levels.test.ts > Read Only',
        'test/handlers/me.test.ts > a Read Only key of another user of the account → that key and that user',
      ],
    },
    {
      quote: '- List endpoints return paginated results and may accept filters and sorts.',
      tests: [
        'test/contract/list-envelope.test.ts > the envelope has data and the five fields of meta, by default of page 1 with 25 records',
        'test/handlers/lists.test.ts > filter[$name] → the records that match, counted and in order',
        'test/handlers/lists.test.ts > sort=%s → by code point, null last, equal values by ID',
      ],
    },
    {
      quote:
        "- When a subscribed event occurs, the service sends an HTTP POST with a JSON body to the subscriber's endpoint.",
      tests: [
        'test/webhooks/payload.test.ts > a new $type: the event identifies the record, contains nothing else of it, and data is an empty array',
        'test/webhooks/payload.test.ts > an event without a subscription: no request',
        'test/webhooks/emit.test.ts > one delivery for each enabled and subscribed webhook',
      ],
    },
    {
      quote: "The body is signed with HMAC-SHA256 using the webhook's Signing Secret.",
      tests: [
        'test/webhooks/payload.test.ts > every event: one signed delivery with the fields of the payload and no others',
        'test/webhooks/exact.test.ts > every attempt sends, signs and stores the same bytes, whatever the body contains',
      ],
    },
    {
      quote: '- Failed webhook deliveries are retried on a fixed schedule.',
      tests: [
        'test/webhooks/exact.test.ts > ten attempts at the specified times, over restarts and clock jumps, then failed',
        'test/webhooks/isolation.test.ts > Retry-After does not move the next attempt, and is in the log',
      ],
    },
    {
      quote:
        "- The service has an API Dashboard that records requests made with the account's keys.",
      tests: [
        'test/contract/every-request.test.ts > with a valid key: counts against the limit, says so in headers, and is in the dashboard',
        'test/contract/every-request.test.ts > a revoked key: 401, in the dashboard of its account, and nothing of its owner’s limit is used',
        'test/contract/request-log.test.ts > stores each request with both bodies, and masks secrets',
      ],
    },
    {
      quote:
        'For each request it shows status, time, source user, IP address, request body and response body.',
      tests: [
        'test/console/request-log.test.ts > shows the time, the user, the IP address and both bodies of a request with status $status',
      ],
    },
    {
      quote: "- API keys and webhooks are managed in the service's web interface.",
      tests: [
        'test/console/api-keys.test.ts > creates a key for the signed-in user, and shows its token in a curl command once',
        'test/console/api-keys.test.ts > updates the name and access level from the next request on',
        'test/console/api-keys.test.ts > revokes a key: its requests fail with 401, it cannot be updated, and the Revoked tab lists it',
        'test/console/webhooks.test.ts > lists every event with its description, stores the input, and shows the secret once',
        'test/console/webhooks.test.ts > an update writes old and new values to the audit log; a form without a change writes nothing',
        'test/console/webhooks.test.ts > sends a test event, cancels retries when it is disabled, and gets 404 after its deletion',
      ],
    },
    {
      quote: 'The Account Owner controls which Admins may create and manage keys and webhooks.',
      tests: [
        'test/console/people.test.ts > change access: the next page and the next API request follow it',
        'test/console/api-keys.test.ts > an Admin with the grant: restricts and revokes the key of another user, but cannot give it Full Access',
        'test/console/api-keys.test.ts > an Admin without the grant: lists the keys, and gets 404 for every action, as a Member does',
        'test/console/webhooks.test.ts > an Admin without the grant sees lists and logs without buttons, secrets or signatures, and reads whom to ask',
      ],
    },
    {
      quote: '- Webhook detail pages show delivery logs.',
      tests: [
        'test/console/delivery-log.test.ts > filters by state, event, time and ID from the URL',
        'test/console/deliveries.test.ts > shows its attempts with their responses, and the time of the next one',
      ],
    },
    {
      quote: 'From there a user can manually retry a Failed delivery or resend a Delivered one.',
      tests: [
        'test/console/deliveries.test.ts > offers each action in its state, makes the attempts, and writes the audit log',
        'test/console/deliveries-browser.test.ts > retries and cancels in its row, with a countdown to the next attempt',
      ],
    },
  ],
}
