import type { Section } from './section.ts'

const ENVELOPE =
  'test/contract/list-envelope.test.ts > the envelope has data and the five fields of meta, by default of page 1 with 25 records'
const PAGES =
  'test/handlers/lists.test.ts > pages of 2, sort=%s → every record once, in the same order'
const CREATED =
  'test/webhooks/payload.test.ts > a new $type: the event identifies the record, contains nothing else of it, and data is an empty array'
const EVERY_EVENT =
  'test/webhooks/payload.test.ts > every event: one signed delivery with the fields of the payload and no others'
const SCREENING_OUTCOME =
  'test/webhooks/payload.test.ts > job_application.created: data.screening_outcome is $outcome, also after the answers have changed'

export const resources: Section = {
  title: '§2 Resources and their fields',
  rows: [
    // A participant.
    {
      quote: '| id | string (UUID) | Identifier of the participant |',
      tests: [
        'test/contract/list-envelope.test.ts > listParticipants: each record has a UUID and a full_name',
        'test/handlers/participants.test.ts > the example of the contract → 201 with its fields in order, and participant.created',
      ],
    },
    {
      quote: '| full_name | string | Appears in list results |',
      tests: [
        'test/contract/list-envelope.test.ts > listParticipants: each record has a UUID and a full_name',
      ],
    },
    {
      quote:
        'A participant list can be filtered by `status`; the value `active` is an accepted filter value.',
      tests: ['test/contract/list-envelope.test.ts > listParticipants: filter[status]=active'],
    },
    { quote: 'Fields of participant beyond id and full_name: not shown.', tests: [] },
    // An export.
    {
      quote:
        'Exports are listed at `/public/v1/exports`. They have a `created_at` field that is accepted as a sort field.',
      tests: [
        'test/contract/list-envelope.test.ts > listExports: sort=created_at and sort=-created_at',
        'test/handlers/exports.test.ts > queues an export, returns its Location and emits export.created',
      ],
    },
    { quote: 'Other fields of the export record: not shown.', tests: [] },
    // The envelope of a list.
    { quote: '| data | array | The records of the current page |', tests: [ENVELOPE, PAGES] },
    { quote: '| meta | object | Describes the current page |', tests: [ENVELOPE] },
    {
      quote: '| meta.current_page | integer | Current page number |',
      tests: [ENVELOPE, PAGES],
    },
    { quote: '| meta.last_page | integer | Last page number |', tests: [ENVELOPE, PAGES] },
    {
      quote: '| meta.per_page | integer | Records on each page |',
      tests: [ENVELOPE, 'test/contract/list-envelope.test.ts > page[size] is 1 to 100'],
    },
    {
      quote: '| meta.total | integer | Number of matching records |',
      tests: [
        ENVELOPE,
        'test/handlers/lists.test.ts > filter[$name] → the records that match, counted and in order',
      ],
    },
    {
      quote:
        "| meta.allowed_sorts | array of strings | Fields accepted by the endpoint's `sort` parameter. An empty array means that the endpoint offers no sorting |",
      tests: [
        ENVELOPE,
        'test/contract/list-envelope.test.ts > sort accepts the fields of meta.allowed_sorts, with and without -, and no others',
        'test/handlers/events.test.ts > %s → 422, because the list has no sorts and filters',
      ],
    },
    // An error.
    {
      quote: '| message | string | Human-readable description of the problem |',
      tests: ['test/contract/order-of-checks.test.ts > $fails: $status'],
    },
    {
      quote:
        '| errors | object | Present on validation failures. Keys are field names, values are arrays of message strings |',
      tests: [
        'test/contract/order-of-checks.test.ts > $fails: $status',
        'test/contract/body.test.ts > several invalid fields → 422 names each',
      ],
    },
    // The body of a delivery.
    {
      quote:
        '| id | string (UUID) | Unique ID of the delivery. Retries of the same delivery keep this ID |',
      tests: [
        CREATED,
        EVERY_EVENT,
        'test/webhooks/attempts.test.ts > failures, then success: retries with the same ID and bytes',
      ],
    },
    {
      quote: '| event_type | string | Event type, in the form `<resource>.<action>` |',
      tests: [CREATED, EVERY_EVENT],
    },
    // Sic: the name of this field is `resource`.
    { quote: '| the service | object | The related record |', tests: [CREATED, EVERY_EVENT] },
    // Sic: the name of this field is `resource.id`.
    {
      quote: '| {base_url} | string (UUID) | UUID of the related record |',
      tests: [CREATED, EVERY_EVENT],
    },
    {
      quote: '| resource.type | string | Type of the related record, such as `participant` |',
      tests: [CREATED, EVERY_EVENT],
    },
    {
      quote:
        '| data | array or object | Event-specific data. It is an empty array for most events. For `job_application.created` it is an object with `screening_outcome` |',
      tests: [EVERY_EVENT, SCREENING_OUTCOME],
    },
    {
      quote:
        '`data.screening_outcome` (for `job_application.created` only) is one of `meets_all`, `missing_must_have`, `missing_nice_to_have`, or null.',
      tests: [
        SCREENING_OUTCOME,
        EVERY_EVENT,
        'test/records/screening.test.ts > %j answered with %j: %s',
      ],
    },
    {
      quote: 'It is the screening result at the moment the application is created.',
      tests: [
        SCREENING_OUTCOME,
        'test/handlers/screening.test.ts > later changes of answers or questions → the outcome stays',
      ],
    },
    {
      quote:
        'The payload identifies what happened and which record it concerns. It does not embed the full record.',
      tests: [CREATED, EVERY_EVENT],
    },
    {
      quote: 'Fields of other records (API key, webhook, job application, task): not shown.',
      tests: [],
    },
  ],
}
