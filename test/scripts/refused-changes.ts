/** Changes that make a contract faulty. `lint`, `generate` and `diff` refuse each with the same
 *  sentence. */
export interface RefusedChange {
  name: string
  file?: 'openapi.yaml' | 'asyncapi.yaml'
  change: [from: string, to: string]
  /** The file of the reported line. By default the changed one. */
  reportedIn?: 'asyncapi.yaml'
  /** A text that begins on the reported line. Default: the new text. */
  line?: string
  /** A part of the sentence. */
  want: string
}

const TITLE = 'title: { type: string, minLength: 1 }'
const POST = 'operationId: createNote\n'

export const REFUSED: RefusedChange[] = [
  {
    name: 'a default of another type',
    change: [TITLE, 'title: { type: string, default: 5 }'],
    want: 'the default 5 must be string: correct the default or its schema',
  },
  {
    name: 'a default that is not in its enum',
    change: ['default: red }', 'default: blue }'],
    want: 'the default "blue" must be equal to one of the allowed values',
  },
  {
    name: 'a default of a parameter out of range',
    change: ['minimum: 1, default: 1', 'minimum: 2, default: 1'],
    want: 'the default 1 must be >= 2',
  },
  {
    name: 'a default of an array',
    change: [TITLE, 'title: { type: array, items: { type: string }, x-default: [1] }'],
    want: 'the default [1] must be string',
  },
  {
    name: 'a required property that does not exist',
    change: ['required: [title, colour', 'required: [heading, title, colour'],
    want: 'required lists heading, which is not a property: add the property, or correct the name',
  },
  {
    name: 'a lower bound above the upper bound',
    change: [TITLE, 'title: { type: string, minLength: 3, maxLength: 2 }'],
    want: 'minLength 3 is above maxLength 2: correct one of them',
  },
  {
    name: 'an unknown keyword',
    change: [TITLE, 'title: { type: string, minLenght: 1 }'],
    want: 'minLenght is no keyword of a schema: correct it, or begin it with x-',
  },
  {
    name: 'a misspelled list of required properties',
    change: ['required: [title, colour, due_at, owner]', 'requierd: [title]'],
    want: 'requierd is no keyword of a schema',
  },
  {
    name: 'an unknown format',
    change: ['format: date-time, nullable', 'format: datetime, nullable'],
    want: 'the format datetime is not supported: use another one, or a pattern',
  },
  {
    name: 'an unknown format of a parameter',
    change: ['format: uuid', 'format: guid'],
    want: 'the format guid is not supported',
  },
  {
    name: 'a pattern that is no regular expression',
    change: [TITLE, "title: { type: string, pattern: '(' }"],
    want: 'the pattern ( is no regular expression: correct it',
  },
  {
    name: 'an unknown type',
    change: [TITLE, 'title: { type: text }'],
    want: 'is no valid schema',
  },
  {
    name: 'an operation without authentication',
    change: [POST, `${POST}      security: []\n`],
    line: 'security: []',
    want: 'createNote must have security: [{ apiKey: [] }]',
  },
  {
    name: 'no authentication at all',
    change: ['security:\n  - apiKey: []\n', ''],
    line: 'openapi: 3.0.3',
    want: 'the contract must have security: [{ apiKey: [] }]',
  },
  {
    name: 'another security scheme',
    change: [POST, `${POST}      security: [{ oauth: [] }]\n`],
    line: 'security: [{ oauth',
    want: 'createNote must have security: [{ apiKey: [] }]',
  },
  {
    name: 'the security scheme of another kind',
    change: ['scheme: bearer', 'scheme: basic'],
    want: 'the security scheme apiKey must have type: http and scheme: bearer',
  },
  {
    name: 'a server with a path',
    change: ['x-rate-limit: { limit: 60', 'servers: [{ url: /v2 }]\nx-rate-limit: { limit: 60'],
    want: 'the server /v2 has the path /v2: write it at the beginning of each path',
  },
  {
    name: 'a server with a path in a variable',
    change: [
      'x-rate-limit: { limit: 60',
      "servers:\n  - url: 'https://example.com{base}'\n" +
        '    variables: { base: { default: /v2 } }\nx-rate-limit: { limit: 60',
    ],
    line: "url: 'https://example.com{base}'",
    want: 'the server https://example.com{base} has the path /v2: write it at the beginning',
  },
  {
    name: 'callbacks',
    change: [POST, `${POST}      callbacks: {}\n`],
    line: 'callbacks',
    want: 'createNote has callbacks: describe the requests as events in asyncapi.yaml',
  },
  {
    name: 'PUT, which is not supported',
    change: ['    delete:\n', '    put:\n'],
    want: 'deleteNote is PUT: use one of get, post, patch, delete',
  },
  {
    name: 'a property with readOnly',
    change: [TITLE, 'title: { type: string, readOnly: true }'],
    want: 'readOnly is not supported: give requests and responses a schema each',
  },
  {
    name: 'another version of OpenAPI',
    change: ['openapi: 3.0.3', 'openapi: 3.1.0'],
    want: 'openapi: 3.1.0 is not supported: write 3.0.x',
  },
  {
    name: 'a parameter with an object',
    change: ['schema: { type: integer, minimum: 1, default: 1 }', 'schema: { type: object }'],
    want: 'parameter page[number] of listNotes must be a string, integer, number, boolean or array',
  },
  {
    name: 'a request that contains itself',
    change: [TITLE, 'title: { $ref: "#/components/schemas/NoteCreate" }'],
    want: '#/components/schemas/NoteCreate contains itself: write it without recursion',
  },
  {
    name: 'a response that contains itself',
    change: ['name: { type: string } } }', 'name: { $ref: "#/components/schemas/Owner" } } }'],
    want: '#/components/schemas/Owner contains itself: write it without recursion',
  },
  {
    name: 'a default response',
    change: ['"204":', 'default:'],
    line: '        default:',
    want: 'response default must be one status code',
  },
  {
    name: 'two 2xx responses',
    change: ['"204":', '"200": { description: Also done. }\n        "204":'],
    line: 'responses:\n        "200": { description: Also done. }',
    want: 'deleteNote must declare exactly one 2xx response',
  },
  {
    name: 'a request body of multipart/form-data',
    change: [
      '            schema: { $ref: "#/components/schemas/NoteCreate" }',
      '            schema: { type: object }\n          multipart/form-data:\n            schema: { type: object }',
    ],
    line: 'content:\n          application/json:\n            schema: { type: object }',
    want: 'a request body must be application/json only',
  },
  {
    name: 'a query parameter with style: deepObject',
    change: [
      'schema: { type: integer, minimum: 1, default: 1 }',
      'style: deepObject\n          schema: { type: object }',
    ],
    line: 'schema: { type: object }',
    want: 'parameter page[number] of listNotes must be a string, integer, number, boolean or array',
  },
  {
    name: 'an array parameter with explode: true',
    change: ['explode: false', 'explode: true'],
    line: 'schema: { type: array, items: { $ref: "#/components/schemas/Colour"',
    want: 'is an array: make it a comma-separated list with style: form and explode: false',
  },
  {
    name: 'a deprecated operation without x-deprecated-since',
    change: [POST, `${POST}      deprecated: true\n`],
    line: 'post:',
    want: 'operation createNote is deprecated: add x-deprecated-since with the day',
  },
  {
    name: 'an operationId that is not in camelCase',
    change: [POST, 'operationId: create-note\n'],
    want: 'operationId create-note must be in camelCase',
  },
  {
    name: 'an event type that nothing emits',
    change: ['x-emitted-by-system: [note.expired]', 'x-emitted-by-system: []'],
    reportedIn: 'asyncapi.yaml',
    line: 'payload: { $ref: "#/components/schemas/NoteExpired" }',
    want: 'nothing emits note.expired',
  },
  {
    name: 'a message whose payload has the event type of another one',
    file: 'asyncapi.yaml',
    change: ['name: note.created', 'name: note.made'],
    line: 'payload: { $ref: "#/components/schemas/NoteCreated" }',
    want: 'the event_type of this payload must be const: note.made',
  },
  {
    name: 'a reference without a target',
    change: [
      '{ $ref: "#/components/schemas/NoteCreate" }',
      '{ $ref: "#/components/schemas/Nope" }',
    ],
    want: 'refers to #/components/schemas/Nope, which does not exist: correct the reference or add its target',
  },
  {
    name: 'broken YAML',
    change: ['  /notes:\n', '  /notes: [\n'],
    line: 'operationId: listNotes',
    want: 'is not YAML',
  },
  {
    name: 'HEAD, which every GET has',
    change: ['    delete:\n', '    head:\n'],
    want: 'deleteNote is HEAD: remove it, because the service responds to HEAD wherever there is a GET',
  },
  {
    name: 'a property with writeOnly',
    change: [TITLE, 'title: { type: string, writeOnly: true }'],
    want: 'writeOnly is not supported: give requests and responses a schema each',
  },
  {
    name: 'a second security scheme',
    change: [POST, `${POST}      security: [{ apiKey: [], other: [] }]\n`],
    line: 'security: [{ apiKey',
    want: 'createNote must have security: [{ apiKey: [] }]',
  },
  {
    name: 'a request body of text/plain',
    change: [
      '          application/json:\n            schema: { $ref: "#/components/schemas/NoteCreate" }',
      '          text/plain:\n            schema: { type: string }',
    ],
    line: 'content:\n          text/plain:',
    want: 'a request body must be application/json only',
  },
  {
    name: 'a cookie parameter',
    change: ['name: Idempotency-Key\n          in: header', 'name: session\n          in: cookie'],
    want: 'parameter session of createNote is a cookie: use a header or the query',
  },
  {
    name: 'a reference to another file',
    change: ['"#/components/schemas/NoteCreate"', '"other.yaml#/NoteCreate"'],
    want: 'refers to other.yaml#/NoteCreate: refer to openapi.yaml or asyncapi.yaml only',
  },
  {
    name: 'a path that is a reference',
    change: ['  /notes/{note}:\n', '  /others: { $ref: "#/paths/~1notes" }\n  /notes/{note}:\n'],
    want: 'the path /others is a reference: write its operations here',
  },
  {
    name: 'a path without its first slash',
    change: ['  /notes/{note}:', '  notes/{note}:'],
    want: 'the path notes/{note} must begin with /: correct it',
  },
  {
    name: 'a path with a query',
    change: ['  /notes:', '  /notes?all=1:'],
    want: 'a path cannot have a query or fragment: declare query parameters instead',
  },
  {
    name: 'a path parameter that is not declared',
    change: ['  /notes/{note}:', '  /notes/{note}/{part}:'],
    line: 'get:\n      operationId: getNote',
    want: 'getNote does not declare {part}: add it to parameters',
  },
  {
    name: 'a path parameter that is not in the path',
    change: ['  /notes/{note}:', '  /notes/first:'],
    line: 'name: note',
    want: '/notes/first has no parameter note: add {note} to the path, or remove it here',
  },
  {
    name: 'an optional path parameter',
    change: ['in: path\n        required: true', 'in: path'],
    line: 'name: note',
    want: 'parameter note of getNote is in the path: add required: true',
  },
  {
    name: 'a list of types',
    change: [TITLE, "title: { type: [string, 'null'] }"],
    want: 'type is a list: write one type, and nullable: true for null',
  },
  {
    name: 'an array without items',
    change: [TITLE, 'title: { type: array }'],
    want: 'an array must have items with one schema: add it',
  },
  {
    name: 'const, which OpenAPI 3.0 does not have',
    change: [TITLE, 'title: { type: string, const: a }'],
    want: 'const is not in OpenAPI 3.0: write enum with one value',
  },
  {
    name: 'exclusiveMinimum',
    change: [TITLE, 'title: { type: integer, minimum: 0, exclusiveMinimum: true }'],
    want: 'exclusiveMinimum is not supported: write minimum',
  },
  {
    name: 'a discriminator without a target',
    change: [
      '          oneOf:\n',
      [
        "          discriminator: { propertyName: name, mapping: { a: '#/components/schemas/Nope' } }",
        '          oneOf:\n',
      ].join('\n'),
    ],
    want: 'refers to #/components/schemas/Nope, which does not exist',
  },
  {
    name: 'a rate limit without numbers',
    change: ['{ limit: 60, window_seconds: 60 }', '{ limit: many }'],
    want: 'x-rate-limit must have limit and window_seconds: write two positive integers',
  },
  {
    name: 'a permission that is no module',
    change: ['paths:\n', 'x-modules: [tasks]\npaths:\n'],
    line: 'x-permission: finance',
    want: 'x-permission of deleteNote must be one of tasks, webhooks',
  },
  {
    name: 'an event type that asyncapi.yaml does not have',
    change: ['x-emits: [note.created]', 'x-emits: [note.created, note.made]'],
    want: 'operation createNote emits note.made, which asyncapi.yaml does not have: add the message or correct the name',
  },
  {
    name: 'a payload that contains itself',
    file: 'asyncapi.yaml',
    change: [
      'data: { type: array, maxItems: 0, items: {} }',
      'data: { $ref: "#/components/schemas/NoteCreated" }',
    ],
    want: '#/components/schemas/NoteCreated contains itself: write it without recursion',
  },
]
