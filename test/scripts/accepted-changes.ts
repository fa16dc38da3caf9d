/** Changes of the contract that every command accepts, and the output of `generate` and `diff` for
 *  each. */
import type { Edit } from './diff-contract.ts'

export interface AcceptedChange {
  name: string
  edits: Edit[]
  /** Edits of asyncapi.yaml. */
  eventEdits?: Edit[]
  /** Handlers that `generate` writes. */
  handlers?: string[]
  /** The files and components that `generate` asks to remove or rename. */
  orphans?: string[]
  /** Level and rule of each change that `diff` lists. */
  diff: string[]
}

const TITLE = 'title: { type: string, minLength: 1 }'
const NOTE_TITLE = 'title: { type: string }'
const COLOURS = 'Colour: { type: string, enum: [red, green] }'
const PAGE = 'schema: { type: integer, minimum: 1, default: 1 }'
const PATH = '  /notes/{note}:\n'
const DELETE = `    delete:
      operationId: deleteNote
      summary: Delete a note
      x-permission: finance
      responses:
        "204":
          description: Done.
`
const SORT = '        - name: sort\n'
const TITLE_FILTER = "        - { name: 'filter[title]', in: query, schema: { type: string } }\n"
const REQUIRED_TITLE_FILTER = TITLE_FILTER.replace('in: query', 'in: query, required: true')

export const ACCEPTED: AcceptedChange[] = [
  // Operations and paths
  {
    name: 'a new operation with several path parameters',
    edits: [
      [
        PATH,
        `  /notes/{note}/parts/{part}:
    get:
      operationId: getPart
      summary: Get a part
      parameters:
        - { name: note, in: path, required: true, schema: { type: string } }
        - { name: part, in: path, required: true, schema: { type: string } }
      responses:
        "204": { description: Nothing. }
${PATH}`,
      ],
    ],
    handlers: ['getPart'],
    diff: ['safe endpoint-added'],
  },
  {
    name: 'a removed operation',
    edits: [[DELETE, '']],
    orphans: [
      'handlers/deleteNote.ts serves no operation: remove it, or rename it with its operation',
      'test/handlers/deleteNote.test.ts tests no operation: remove it, or rename it with its operation',
    ],
    diff: ['breaking api-removed-without-deprecation'],
  },
  {
    name: 'a renamed operation',
    edits: [['operationId: getNote', 'operationId: readNote']],
    handlers: ['readNote'],
    orphans: [
      'handlers/getNote.ts serves no operation: remove it, or rename it with its operation',
      'test/handlers/getNote.test.ts tests no operation: remove it, or rename it with its operation',
    ],
    diff: ['code api-operation-id-removed'],
  },
  {
    name: 'another path',
    edits: [[PATH, '  /memos/{note}:\n']],
    diff: [
      'breaking api-path-removed-without-deprecation',
      'breaking api-path-removed-without-deprecation',
      'safe endpoint-added',
      'safe endpoint-added',
    ],
  },
  {
    name: 'another method',
    edits: [['    delete:\n', '    patch:\n']],
    diff: ['breaking api-removed-without-deprecation', 'safe endpoint-added'],
  },
  {
    name: 'a renamed path parameter',
    edits: [
      [PATH, '  /notes/{note_id}:\n'],
      ['name: note\n', 'name: note_id\n'],
    ],
    diff: ['code api-path-parameter-renamed'],
  },
  { name: 'another tag', edits: [['tags: []', 'tags: [Notes]']], diff: ['code api-tag-changed'] },
  {
    name: 'another summary',
    edits: [['summary: List notes', 'summary: List all notes']],
    diff: [],
  },
  {
    name: 'a deprecated operation',
    edits: [
      [
        'operationId: getNote',
        "operationId: getNote\n      deprecated: true\n      x-deprecated-since: '2026-01-01'",
      ],
    ],
    diff: ['safe endpoint-deprecated'],
  },
  {
    name: 'another URL of the server',
    edits: [
      [
        'x-rate-limit: { limit: 60',
        [
          "servers: [{ url: '{scheme}://example.com:{port}', variables:",
          "  { scheme: { default: https }, port: { default: '8443' } } }]",
          'x-rate-limit: { limit: 60',
        ].join('\n'),
      ],
    ],
    diff: ['breaking api-server-removed', 'safe api-server-added'],
  },
  {
    name: 'a lower rate limit',
    edits: [['{ limit: 60,', '{ limit: 50,']],
    diff: [
      'risky api-rate-limit-decreased',
      'risky api-rate-limit-decreased',
      'risky api-rate-limit-decreased',
    ],
  },
  {
    name: 'a new permission',
    edits: [['x-permission: finance', 'x-permission: notes']],
    diff: ['breaking api-security-scope-added'],
  },
  // Parameters
  {
    name: 'a new filter',
    edits: [[SORT, TITLE_FILTER + SORT]],
    diff: ['safe new-optional-request-parameter'],
  },
  {
    name: 'a new required parameter',
    edits: [[SORT, REQUIRED_TITLE_FILTER + SORT]],
    diff: ['breaking new-required-request-parameter'],
  },
  {
    name: 'a removed parameter',
    edits: [[`        - name: page[number]\n          in: query\n          ${PAGE}\n`, '']],
    diff: ['breaking request-parameter-removed'],
  },
  {
    name: 'a new option of a sort',
    edits: [['-created_at] }', '-created_at, colour, -colour] }']],
    diff: ['safe request-parameter-enum-value-added', 'safe request-parameter-enum-value-added'],
  },
  {
    name: 'another type of a parameter',
    edits: [[PAGE, 'schema: { type: string }']],
    diff: [
      'breaking request-parameter-type-changed',
      'breaking request-parameter-default-value-changed',
      'safe request-parameter-min-decreased',
    ],
  },
  {
    name: 'another limit of a parameter',
    edits: [['minimum: 1, default: 1', 'minimum: 1, maximum: 9, default: 1']],
    diff: ['breaking request-parameter-max-decreased'],
  },
  // Requests
  {
    name: 'a new optional field of a request',
    edits: [[TITLE, `${TITLE}\n        size: { type: integer }`]],
    diff: ['safe new-optional-request-property'],
  },
  {
    name: 'a new required field of a request',
    edits: [
      ['required: [title]\n', 'required: [title, size]\n'],
      [TITLE, `${TITLE}\n        size: { type: integer }`],
    ],
    diff: ['breaking new-required-request-property'],
  },
  {
    name: 'a field of a request that becomes optional',
    edits: [['required: [title]\n      additional', 'additional']],
    diff: ['safe request-property-became-optional'],
  },
  {
    name: 'the default null',
    edits: [['default: red', 'default: null']],
    diff: ['breaking request-property-default-value-changed'],
  },
  {
    name: 'a pattern',
    edits: [[TITLE, "title: { type: string, minLength: 1, pattern: '^[a-z]+$' }"]],
    diff: ['breaking request-property-pattern-added'],
  },
  {
    name: 'additional properties',
    edits: [['additionalProperties: false', 'additionalProperties: { type: string }']],
    diff: ['safe request-body-additional-properties-allowed'],
  },
  // Responses
  {
    name: 'a new field of a response',
    edits: [[NOTE_TITLE, `${NOTE_TITLE}\n        size: { type: integer }`]],
    diff: ['safe response-optional-property-added'],
  },
  {
    name: 'a removed field of a response',
    edits: [
      ['required: [title, colour, due_at, owner]', 'required: [title, colour, owner]'],
      ['        due_at: { type: string, format: date-time, nullable: true }\n', ''],
    ],
    diff: ['breaking response-required-property-removed'],
  },
  {
    name: 'a renamed field of a response',
    edits: [
      ['required: [title, colour, due_at, owner]', 'required: [title, colour, ends_at, owner]'],
      ['due_at: {', 'ends_at: {'],
    ],
    diff: ['breaking response-required-property-removed', 'safe response-required-property-added'],
  },
  {
    name: 'a field of a response that can be null',
    edits: [[NOTE_TITLE, 'title: { type: string, nullable: true }']],
    diff: ['breaking response-property-became-nullable'],
  },
  {
    name: 'a field of a response without its format',
    edits: [['format: date-time, ', '']],
    diff: ['breaking response-property-format-removed'],
  },
  {
    name: 'a new option',
    edits: [[COLOURS, 'Colour: { type: string, enum: [red, green, blue] }']],
    diff: ['safe request-parameter-enum-value-added'],
  },
  {
    name: 'a removed option',
    edits: [[COLOURS, 'Colour: { type: string, enum: [red] }']],
    diff: ['breaking request-parameter-enum-value-removed'],
  },
  {
    name: 'a new status',
    edits: [['"204":', '"404": { description: None. }\n        "204":']],
    diff: ['safe response-non-success-status-added'],
  },
  {
    name: 'another status of success',
    edits: [['"204":', '"202":']],
    diff: ['breaking response-success-status-removed', 'safe response-success-status-added'],
  },
  {
    name: 'another media type',
    edits: [['text/plain:', 'text/csv:']],
    diff: ['breaking response-media-type-removed', 'safe response-media-type-added'],
  },
  {
    name: 'a removed header',
    edits: [['            X-Count: { schema: { type: integer, minimum: 1 } }\n', '']],
    diff: ['breaking optional-response-header-removed'],
  },
  // Schemas
  {
    name: 'a renamed schema',
    edits: [
      [
        'schema: { $ref: "#/components/schemas/NoteCreate" }',
        'schema: { $ref: "#/components/schemas/NewNote" }',
      ],
      ['    NoteCreate:\n', '    NewNote:\n'],
    ],
    diff: ['code request-body-schema-renamed'],
  },
  {
    name: 'a discriminator with a mapping',
    edits: [
      [
        '          oneOf:\n',
        [
          "          discriminator: { propertyName: name, mapping: { a: '#/components/schemas/Owner' } }",
          '          oneOf:\n',
        ].join('\n'),
      ],
    ],
    diff: ['code response-property-discriminator-changed'],
  },
  {
    name: 'a merge key',
    edits: [[TITLE, 'title: { <<: { type: string }, minLength: 1 }']],
    diff: [],
  },
  {
    name: 'a component that nothing uses',
    edits: [['  schemas:\n', '  schemas:\n    Left: { type: object }\n']],
    orphans: [
      'openapi.yaml:85 nothing refers to components.schemas.Left: remove it, or refer to it',
    ],
    diff: [],
  },
  // Events
  {
    name: 'a new event type',
    edits: [['[note.expired]', '[note.expired, note.lost]']],
    eventEdits: [
      [
        '    NoteCreated:\n      name',
        `    NoteLost:
      name: note.lost
      summary: A note was lost.
      description: Sent when it is.
      headers: { $ref: "#/components/schemas/Headers" }
      payload: { $ref: "#/components/schemas/NoteLost" }
      examples:
        - payload: { event_type: note.lost }
    NoteCreated:
      name`,
      ],
      [
        '    NoteCreated:\n      type',
        `    NoteLost:
      type: object
      required: [event_type]
      properties:
        event_type: { type: string, const: note.lost }
        resource: { $ref: "#/components/schemas/Resource" }
    NoteCreated:
      type`,
      ],
    ],
    diff: ['safe event-added'],
  },
  {
    name: 'an event type that is no longer emitted by an operation',
    edits: [
      ['      x-emits: [note.created]\n', ''],
      ['[note.expired]', '[note.expired, note.created]'],
    ],
    diff: ['breaking api-event-removed', 'safe event-emitted-by-system'],
  },
  {
    name: 'a new field of an event',
    edits: [],
    eventEdits: [
      [
        '          required: [colour]\n          properties:\n',
        '          required: [colour]\n          properties:\n            size: { type: integer }\n',
      ],
    ],
    diff: ['safe event-optional-property-added'],
  },
]
