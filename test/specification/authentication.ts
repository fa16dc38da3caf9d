import type { Section } from './section.ts'

const FULL_ACCESS =
  'test/contract/access-levels.test.ts > $slug: creates, reads, updates and deletes'
const SIGNED_EVENTS =
  'test/webhooks/payload.test.ts > every event: one signed delivery with the fields of the payload and no others'
const SAME_BYTES =
  'test/webhooks/exact.test.ts > every attempt sends, signs and stores the same bytes, whatever the body contains'
const SAMPLES =
  'test/docs/receivers.test.ts > processes each real delivery once and follows every rule of check-receiver'

export const authentication: Section = {
  title: '§5 Authentication',
  rows: [
    {
      quote: '1. Every protected request carries `Authorization: Bearer <API_KEY>`.',
      tests: ['test/contract/keys.test.ts > %s without a key → 401, before any other check'],
    },
    {
      quote: '2. `Accept: application/json` makes error responses JSON.',
      tests: [
        'test/contract/order-of-checks.test.ts > $fails: $status',
        'test/contract/paths.test.ts > the unknown path %s → 404 as JSON, without a key',
      ],
    },
    {
      quote: '3. A missing, malformed or revoked key gives 401 Unauthorized.',
      tests: [
        'test/contract/keys.test.ts > %s → 401 with WWW-Authenticate',
        'test/contract/keys.test.ts > a revoked key, or a deactivated user → 401 for the next request',
      ],
    },
    {
      quote:
        '4. Each API key has an access level, chosen when the key is created and changeable later:',
      tests: [
        'test/console/api-keys.test.ts > creates a key for the signed-in user, and shows its token in a curl command once',
        'test/console/api-keys.test.ts > updates the name and access level from the next request on',
      ],
    },
    { quote: '| Full Access | Read, create, update and delete data |', tests: [FULL_ACCESS] },
    {
      quote:
        '| Read Only | Read data only. Create, update and delete requests return 403 Forbidden |',
      tests: [
        'test/contract/access-levels.test.ts > %s: permitted',
        'test/contract/access-levels.test.ts > %s: 403, and nothing changes',
      ],
    },
    {
      quote:
        '5. For permissions other than Finance, a key has account-level access to the operations its access level allows. It can therefore reach data that the key owner cannot reach in the web interface.',
      tests: [
        'test/contract/access-levels.test.ts > no permission in the web interface: all data by API, except Finance',
      ],
    },
    {
      quote: "6. Finance endpoints stay limited by the key owner's Finance module permission.",
      tests: [
        'test/contract/access-levels.test.ts > Finance: %s',
        'test/contract/keys.test.ts > payments: 403 unless the user has Finance access, checked for each request',
        'test/handlers/exports.test.ts > 403 for payments unless the key owner may read them',
      ],
    },
    {
      quote: '7. The Account Owner controls which Admins may create and manage keys and webhooks.',
      tests: [
        'test/console/people.test.ts > change access: the next page and the next API request follow it',
        'test/console/permissions.test.ts > permissions on each route',
        'test/console/api-keys.test.ts > an Admin with the grant: restricts and revokes the key of another user, but cannot give it Full Access',
        'test/console/api-keys.test.ts > an Admin without the grant: lists the keys, and gets 404 for every action, as a Member does',
        'test/console/webhooks.test.ts > an Admin without the grant sees lists and logs without buttons, secrets or signatures, and reads whom to ask',
      ],
    },
    {
      quote: '1. Every delivery carries the header `X-Service-Signature: <signature>`.',
      tests: [SIGNED_EVENTS, SAME_BYTES],
    },
    {
      quote:
        "2. The value is the lowercase hexadecimal HMAC-SHA256 digest of the exact raw JSON request body, keyed with the webhook's Signing Secret (`<SIGNING_SECRET>`).",
      tests: [
        SIGNED_EVENTS,
        SAME_BYTES,
        'test/webhooks/sign.test.ts > X-Service-Signature: hex over the raw body, with the whole secret (service-spec §5)',
      ],
    },
    {
      quote:
        '3. The receiver computes the digest over the raw body and compares it with the header using a constant-time comparison.',
      tests: [
        'test/docs/constant-time.test.ts > %s compares both signatures in constant time',
        SAMPLES,
      ],
    },
    {
      quote: 'A missing header is treated as an empty string and fails the comparison.',
      tests: [
        SAMPLES,
        'test/client/webhook.test.ts > verifyWebhook refuses',
        'test/cli/check-receiver.test.ts > fails a receiver that $name',
      ],
    },
  ],
}
