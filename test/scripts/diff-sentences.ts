/** Edits of the contract, and each change that `diff` finds, as its level, rule and sentence. */
import { type Edit, event } from './diff-contract.ts'
import { NOTE_LOST } from './diff-edits.ts'

interface Sentence {
  name: string
  edits: Edit[]
  /** The changes from the contract to the edited one. */
  forward: string[]
  /** The changes from the edited contract to the contract. */
  backward: string[]
}

const REQUEST_SIZE = 'size: { type: integer }'
const CHANNEL = `channels:
  webhook:
    messages:
      lost: { $ref: '#/components/messages/NoteLost' }
components:
`

export const SENTENCES: Sentence[] = [
  {
    name: 'another server',
    edits: [['x-rate-limit: { limit: 60', 'servers: [{ url: /api/ }]\nx-rate-limit: { limit: 60']],
    forward: [
      'breaking api-server-removed: the server / is gone',
      'safe api-server-added: the server /api is new',
    ],
    backward: [
      'breaking api-server-removed: the server /api is gone',
      'safe api-server-added: the server / is new',
    ],
  },
  {
    name: 'an empty list of servers, which means the server /',
    edits: [['x-rate-limit: { limit: 60', 'servers: []\nx-rate-limit: { limit: 60']],
    forward: [],
    backward: [],
  },
  {
    name: 'the variables of a server',
    edits: [
      [
        'x-rate-limit: { limit: 60',
        "servers: [{ url: '/{v}', variables: { v: { default: '', enum: ['', v2] } } }]\nx-rate-limit: { limit: 60",
      ],
    ],
    forward: ['safe api-server-added: the server /v2 is new'],
    backward: ['breaking api-server-removed: the server /v2 is gone'],
  },
  {
    name: 'explode of a single value',
    edits: [['- { name: page, in: query,', '- { name: page, in: query, explode: false,']],
    forward: [],
    backward: [],
  },
  {
    name: 'a sunset in two months',
    edits: [
      [
        '- { name: page, in: query,',
        "- { name: page, in: query, deprecated: true, x-deprecated-since: '2026-03-01', x-sunset: '2026-05-01',",
      ],
    ],
    forward: [
      'breaking request-parameter-sunset-date-too-small: the query parameter page can be removed on 2026-05-01, less than a year after its deprecation on 2026-03-01',
      'safe request-parameter-deprecated: the query parameter page is deprecated, and can be removed on 2026-05-01',
    ],
    backward: [
      'safe request-parameter-reactivated: the query parameter page is no longer deprecated',
    ],
  },
  {
    name: 'an earlier sunset of a parameter',
    edits: [['2027-06-01', '2027-05-01']],
    forward: [
      'breaking request-parameter-sunset-date-changed-too-small: the query parameter ids can be removed on 2027-05-01, before the promised 2027-06-01',
    ],
    backward: [],
  },
  {
    name: 'an earlier sunset of a field and of an event',
    edits: [
      [
        "note: { type: string, deprecated: true, x-sunset: '2026-06-01' }",
        "note: { type: string, deprecated: true, x-sunset: '2026-05-01' }",
      ],
      [NOTE_LOST, NOTE_LOST.replace('2026-06-01', '2026-05-01')],
    ],
    forward: [
      'breaking response-property-sunset-date-changed-too-small: `note` of the response 200 can be removed on 2026-05-01, before the promised 2026-06-01',
      'breaking event-sunset-date-changed-too-small: the event note.lost can be removed on 2026-05-01, before the promised 2026-06-01',
    ],
    backward: [],
  },
  {
    name: 'a field that cannot be sent',
    edits: [[REQUEST_SIZE, 'size: { type: integer, readOnly: true }']],
    forward: [
      'breaking request-property-became-read-only: `size` of the request body cannot be sent',
    ],
    backward: [
      'safe request-property-became-not-read-only: `size` of the request body can be sent',
    ],
  },
  {
    name: 'a field that is never returned',
    edits: [
      ['count: { type: integer, minimum: 0', 'count: { writeOnly: true, type: integer, minimum: 0'],
    ],
    forward: [
      'breaking response-property-became-write-only: `count` of the response 200 is never returned',
    ],
    backward: [
      'safe response-property-became-not-write-only: `count` of the response 200 can be returned',
    ],
  },
  {
    name: 'the pattern of a response header',
    edits: [
      ['X-Hint: { schema: { type: string }', "X-Hint: { schema: { type: string, pattern: '^x' }"],
    ],
    forward: [
      'safe response-header-pattern-added: the header X-Hint of the response 200 has the pattern ^x',
    ],
    backward: [
      'breaking response-header-pattern-removed: the header X-Hint of the response 200 no longer has the pattern ^x',
    ],
  },
  {
    name: 'an event on a channel',
    edits: [['components:\n  messages', `${CHANNEL}  messages`]],
    forward: ['safe event-added-to-channel: the event note.lost is sent on a channel'],
    backward: ['breaking event-removed-from-channel: the event note.lost is sent on no channel'],
  },
  {
    name: 'another signature of deliveries',
    edits: [
      [
        event('NoteCreated', 'note.created'),
        event('NoteCreated', 'note.created').replace(
          'x-signature: { type: string }',
          'x-signature: { type: string, x-signature: { key: secret } }',
        ),
      ],
    ],
    forward: [],
    backward: [
      'breaking event-header-signature-changed: `x-signature` of the headers of the event note.created is signed in another way',
    ],
  },
  {
    name: 'a tag',
    edits: [['operationId: createMixed\n', 'operationId: createMixed\n      tags: [Mixed]\n']],
    forward: ['code api-tag-changed: the tag is Mixed instead of none'],
    backward: ['code api-tag-changed: the tag is none instead of Mixed'],
  },
  {
    name: 'the name of a schema',
    edits: [
      [
        "        '200':\n          description: A note.\n          content:\n            application/json:\n              schema: { $ref: '#/components/schemas/Note' }",
        "        '200':\n          description: A note.\n          content:\n            application/json:\n              schema: { $ref: '#/components/schemas/Memo' }",
      ],
      [
        '    Team: { type: object',
        "    Memo: { $ref: '#/components/schemas/Note' }\n    Team: { type: object",
      ],
    ],
    forward: [
      'code response-body-schema-renamed: the response 200 has the schema name Memo instead of Note',
    ],
    backward: [
      'code response-body-schema-renamed: the response 200 has the schema name Note instead of Memo',
    ],
  },
  {
    name: 'the names of values',
    edits: [
      [
        'state: { type: string, enum: [open], ',
        'state: { type: string, x-enum-varnames: [OPENED], enum: [open], ',
      ],
    ],
    forward: [
      'code response-property-enum-names-changed: `state` of the response 200 has other names for its values in generated code',
    ],
    backward: [
      'code response-property-enum-names-changed: `state` of the response 200 has other names for its values in generated code',
    ],
  },
  {
    name: 'a discriminator',
    edits: [
      ['        maker:\n', '        maker:\n          discriminator: { propertyName: kind }\n'],
    ],
    forward: [
      'code response-property-discriminator-changed: `maker` of the response 200 has another discriminator',
    ],
    backward: [
      'code response-property-discriminator-changed: `maker` of the response 200 has another discriminator',
    ],
  },
  {
    name: 'a value of a request',
    edits: [
      [
        'colour: { type: string, enum: [red, green] }\n                size',
        'colour: { type: string, enum: [red] }\n                size',
      ],
    ],
    forward: [
      'breaking request-property-enum-value-removed: `colour` of the request body no longer takes "green"',
    ],
    backward: [
      'safe request-property-enum-value-added: `colour` of the request body can be "green"',
    ],
  },
  {
    name: 'an event of the system that an operation emits instead',
    edits: [
      ['x-emitted-by-system: [note.lost]', 'x-emitted-by-system: []'],
      ['x-emits: [note.created]', 'x-emits: [note.created, note.lost]'],
    ],
    forward: [
      'breaking event-not-emitted-by-system: the event note.lost is not emitted by the system',
      'safe api-event-added: POST /notes emits note.lost',
    ],
    backward: [
      'breaking api-event-removed: POST /notes does not emit note.lost',
      'safe event-emitted-by-system: the event note.lost is emitted by the system',
    ],
  },
  {
    name: 'a header of the responses to unmatched requests',
    edits: [
      [
        'x-emitted-by-system',
        "x-unmatched-requests: { '405': { description: None., headers: { Allow: { schema: { type: string } } } } }\nx-emitted-by-system",
      ],
    ],
    forward: ['safe response-non-success-status-added: the response 405 is new'],
    backward: ['safe response-non-success-status-removed: the response 405 is gone'],
  },
  {
    name: 'a value of an extensible enumeration',
    edits: [['state: { type: string, enum: [open]', 'state: { type: string, enum: [open, closed]']],
    forward: [
      'risky response-property-enum-value-added: `state` of the response 200 can be "closed"',
    ],
    backward: [
      'safe response-property-enum-value-removed: `state` of the response 200 is never "closed"',
    ],
  },
  {
    name: 'an enumeration that becomes extensible',
    edits: [
      [
        '        colour: { type: string, enum: [red, green] }\n        state',
        '        colour: { type: string, enum: [red, green], x-extensible-enum: true }\n        state',
      ],
    ],
    forward: [
      'breaking response-property-became-extensible-enum: `colour` of the response 200 can get new values without notice',
    ],
    backward: [],
  },
  {
    name: 'another value of a keyword without rules of its own',
    edits: [['multipleOf: 3', 'multipleOf: 2']],
    forward: [
      'breaking event-property-constraint-changed: `data.shade` of the event note.created has multipleOf: 2 instead of 3',
    ],
    backward: [
      'breaking event-property-constraint-changed: `data.shade` of the event note.created has multipleOf: 3 instead of 2',
    ],
  },
]
