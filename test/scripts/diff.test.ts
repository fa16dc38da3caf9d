import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { type Change, diff } from '../../scripts/diff/diff.ts'
import {
  idOfSchemaChange,
  RULES,
  SCHEMA_RULES,
  type SchemaChange,
} from '../../scripts/diff/rules.ts'
import { newMuster } from '../cli/muster.ts'

const run = promisify(execFile)

const OPENAPI = `openapi: 3.0.3
info: { title: Notes, version: 1.0.0 }
security: [{ apiKey: [] }]
x-rate-limit: { limit: 60, window_seconds: 60 }
x-emitted-by-system: [note.lost]
paths:
  /notes:
    get:
      operationId: listNotes
      parameters:
        - { name: page, in: query, schema: { type: integer, minimum: 1, maximum: 9, default: 1 } }
        - { name: If-None-Match, in: header, schema: { type: string } }
      responses:
        '200':
          description: Notes.
          headers:
            ETag: { required: true, schema: { type: string } }
            X-Hint: { schema: { type: string } }
          content:
            application/json:
              schema: { $ref: '#/components/schemas/Note' }
        '404': { description: None. }
    post:
      operationId: createNote
      x-emits: [note.created]
      requestBody:
        content:
          application/json:
            schema:
              type: object
              required: [title]
              additionalProperties: false
              properties:
                title: { type: string, minLength: 2, maxLength: 20, pattern: '^x' }
                colour: { type: string, enum: [red, green] }
                size: { type: integer }
                tags: { type: array, items: { type: string }, minItems: 1, maxItems: 5 }
                meta:
                  type: object
                  properties:
                    old: { type: string }
                owner:
                  oneOf:
                    - { $ref: '#/components/schemas/Person' }
                    - { $ref: '#/components/schemas/Team' }
      responses:
        '201': { description: Done. }
  /notes/{note}:
    get:
      operationId: getNote
      parameters:
        - { name: note, in: path, required: true, schema: { type: string } }
      responses:
        '200':
          description: A note.
          content:
            application/json:
              schema: { $ref: '#/components/schemas/Note' }
  /old:
    get:
      operationId: getOld
      deprecated: true
      x-deprecated-since: '2026-01-01'
      x-sunset: '2026-06-01'
      responses:
        '204': { description: Nothing. }
  /mixed:
    get:
      operationId: getMixed
      deprecated: true
      x-deprecated-since: '2026-01-01'
      x-sunset: '2026-06-01'
      responses:
        '204': { description: Nothing. }
    post:
      operationId: createMixed
      responses:
        '204': { description: Nothing. }
components:
  schemas:
    Person: { type: object, properties: { name: { type: string } } }
    Team: { type: object, properties: { members: { type: integer } } }
    Note:
      type: object
      required: [title, count]
      properties:
        title: { type: string, minLength: 2, maxLength: 20 }
        count: { type: integer, minimum: 0, maximum: 9 }
        colour: { type: string, enum: [red, green] }
        due_at: { type: string, format: date-time, nullable: true }
        tags: { type: array, items: { type: string }, uniqueItems: true }
        note: { type: string, deprecated: true, x-sunset: '2026-06-01' }
        owner:
          oneOf:
            - { $ref: '#/components/schemas/Person' }
            - { $ref: '#/components/schemas/Team' }
        parent: { $ref: '#/components/schemas/Note' }
`
const event = (name: string, type: string, more = ''): string => `    ${name}:
      name: ${type}
${more}      headers: { type: object, properties: { x-signature: { type: string } } }
      payload: { $ref: '#/components/schemas/${name}' }
      examples: [{ payload: {} }]
`
const payload = (name: string, type: string): string => `    ${name}:
      type: object
      required: [event_type, resource, data]
      properties:
        event_type: { type: string, const: ${type} }
        resource: { type: object, properties: { type: { type: string, const: note } } }
        data: { type: object, required: [colour], properties: { colour: { type: string, enum: [red] }, shade: { type: integer } } }
`
const ASYNCAPI = `asyncapi: 3.0.0
info: { title: Notes, version: 1.0.0 }
components:
  messages:
${event('NoteCreated', 'note.created')}${event('NoteLost', 'note.lost', "      x-deprecated-since: '2026-01-01'\n      x-sunset: '2026-06-01'\n")}  schemas:
${payload('NoteCreated', 'note.created')}${payload('NoteLost', 'note.lost')}`

const TODAY = new Date('2026-03-01T12:00:00Z')
const AFTER_SUNSET = new Date('2026-06-01T00:00:00Z')

async function newFolder(openapi = OPENAPI, asyncapi = ASYNCAPI) {
  const path = await mkdtemp(join(tmpdir(), 'diff-'))
  const write = async (openapiText: string, asyncapiText: string): Promise<void> => {
    await writeFile(join(path, 'openapi.yaml'), openapiText)
    await writeFile(join(path, 'asyncapi.yaml'), asyncapiText)
  }
  await write(openapi, asyncapi)
  return { path, write, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) }
}

function replaced(text: string, [from, to]: Edit): string {
  expect(text).toContain(from)
  return text.replace(from, () => to)
}

type Edit = [from: string, to: string]

/** What changes from the contract above to the one with the edit, and on the way back. */
async function bothWays(edits: Edit[], today: Date): Promise<{ there: Change[]; back: Change[] }> {
  const of = (text: string): string =>
    edits.filter(([from]) => text.includes(from)).reduce(replaced, text)
  await using before = await newFolder()
  await using after = await newFolder(of(OPENAPI), of(ASYNCAPI))
  expect(edits.filter(([from]) => !OPENAPI.includes(from) && !ASYNCAPI.includes(from))).toEqual([])
  const there = await diff({ base: before.path, root: after.path, today })
  const back = await diff({ base: after.path, root: before.path, today })
  return { there: there.changes, back: back.changes }
}

const say = (changes: Change[]): string[] => changes.map(({ level, id }) => `${level} ${id}`).sort()

interface Case {
  edit: Edit
  /** What the contract needs besides, to agree with itself. */
  also?: Edit
  there: string[]
  back: string[]
  today?: Date
}

const OLD = OPENAPI.slice(OPENAPI.indexOf('  /old:'), OPENAPI.indexOf('  /mixed:'))
const MIXED = OPENAPI.slice(
  OPENAPI.indexOf('    get:\n      operationId: getMixed'),
  OPENAPI.indexOf('    post:\n      operationId: createMixed'),
)
const NOTE = OPENAPI.slice(OPENAPI.indexOf('  /notes/{note}:'), OPENAPI.indexOf('  /old:'))
const LIST = OPENAPI.slice(
  OPENAPI.indexOf('    get:\n      operationId: listNotes'),
  OPENAPI.indexOf('    post:'),
)
const POST = OPENAPI.slice(OPENAPI.indexOf('    post:'), OPENAPI.indexOf('  /notes/{note}:'))
const BODY = OPENAPI.slice(
  OPENAPI.indexOf('      requestBody:'),
  OPENAPI.indexOf("      responses:\n        '201'"),
)
const SILENT: Edit = ['x-emitted-by-system: [note.lost]', 'x-emitted-by-system: []']
const LOST = event(
  'NoteLost',
  'note.lost',
  "      x-deprecated-since: '2026-01-01'\n      x-sunset: '2026-06-01'\n",
)

/** Each rule, and its opposite: the levels turn round with the direction of what is described. */
const CASES: Record<string, Case[]> = {
  operations: [
    {
      edit: [OLD, ''],
      there: ['breaking api-path-removed-before-sunset'],
      back: ['safe endpoint-added'],
    },
    {
      edit: [OLD, ''],
      there: ['safe api-path-removed-with-deprecation'],
      back: ['safe endpoint-added'],
      today: AFTER_SUNSET,
    },
    {
      edit: [NOTE, ''],
      there: ['breaking api-path-removed-without-deprecation'],
      back: ['safe endpoint-added'],
    },
    {
      edit: [MIXED, ''],
      there: ['breaking api-removed-before-sunset'],
      back: ['safe endpoint-added'],
    },
    {
      edit: [MIXED, ''],
      there: ['safe api-removed-with-deprecation'],
      back: ['safe endpoint-added'],
      today: AFTER_SUNSET,
    },
    {
      edit: [LIST, ''],
      there: ['breaking api-removed-without-deprecation'],
      back: ['safe endpoint-added'],
    },
    {
      edit: ["      x-sunset: '2026-06-01'\n      responses", '      responses'],
      there: [],
      back: [],
    },
    {
      edit: ["x-sunset: '2026-06-01'\n      responses", "x-sunset: '2026-04-01'\n      responses"],
      there: ['breaking api-sunset-date-changed-too-small'],
      back: [],
    },
    {
      edit: [
        'operationId: getNote',
        "operationId: getNote\n      deprecated: true\n      x-deprecated-since: '2026-01-01'",
      ],
      there: ['safe endpoint-deprecated'],
      back: ['safe endpoint-reactivated'],
    },
    {
      edit: ['operationId: getNote', 'operationId: readNote'],
      there: ['risky api-operation-id-removed'],
      back: ['risky api-operation-id-removed'],
    },
    {
      edit: ['operationId: getNote', 'operationId: getNote\n      security: []'],
      there: ['safe api-security-removed'],
      back: ['breaking api-security-added'],
    },
    {
      edit: ['operationId: getNote', 'operationId: getNote\n      x-permission: finance'],
      there: ['breaking api-security-scope-added'],
      back: ['safe api-security-scope-removed'],
    },
    {
      edit: [
        'operationId: getNote',
        'operationId: getNote\n      x-rate-limit: { limit: 5, window_seconds: 60 }',
      ],
      there: ['risky api-rate-limit-decreased'],
      back: ['safe api-rate-limit-increased'],
    },
    {
      edit: ['x-emits: [note.created]', 'x-emits: [note.created, note.lost]'],
      there: ['safe api-event-added'],
      back: ['risky api-event-removed'],
    },
  ],
  parameters: [
    {
      edit: ['        - { name: If-None-Match, in: header, schema: { type: string } }\n', ''],
      there: ['risky request-header-parameter-removed'],
      back: ['safe new-optional-request-parameter'],
    },
    {
      edit: ['name: page, in: query', 'name: side, in: query'],
      there: ['breaking request-parameter-removed', 'safe new-optional-request-parameter'],
      back: ['breaking request-parameter-removed', 'safe new-optional-request-parameter'],
    },
    {
      edit: ['name: page, in: query', 'name: page, in: query, required: true'],
      there: ['breaking request-parameter-became-required'],
      back: ['safe request-parameter-became-optional'],
    },
    {
      edit: [
        '        - { name: page, in',
        '        - { name: who, in: query, required: true, schema: { type: string } }\n        - { name: page, in',
      ],
      there: ['breaking new-required-request-parameter'],
      back: ['breaking request-parameter-removed'],
    },
    {
      edit: ['maximum: 9, default: 1', 'maximum: 8, default: 1'],
      there: ['breaking request-parameter-max-decreased'],
      back: ['safe request-parameter-max-increased'],
    },
    {
      edit: ['default: 1 }', 'default: 2 }'],
      there: ['breaking request-parameter-default-value-changed'],
      back: ['breaking request-parameter-default-value-changed'],
    },
    // The name of a path parameter is ours alone.
    {
      edit: [
        '  /notes/{note}:\n    get:\n      operationId: getNote\n      parameters:\n        - { name: note,',
        '  /notes/{id}:\n    get:\n      operationId: getNote\n      parameters:\n        - { name: id,',
      ],
      there: [],
      back: [],
    },
  ],
  'request bodies': [
    {
      edit: [BODY, ''],
      there: ['breaking request-body-removed'],
      back: ['breaking request-body-added-required'],
    },
    {
      edit: [
        'colour: { type: string, enum: [red, green] }\n                size',
        'colour: { type: string, enum: [red] }\n                size',
      ],
      there: ['breaking request-property-enum-value-removed'],
      back: ['safe request-property-enum-value-added'],
    },
    {
      edit: [
        'colour: { type: string, enum: [red, green] }\n                size',
        'colour: { type: string }\n                size',
      ],
      there: ['safe request-property-enum-unset'],
      back: ['breaking request-property-became-enum'],
    },
    {
      edit: ['size: { type: integer }', 'size: { type: number }'],
      there: ['safe request-property-type-generalized'],
      back: ['breaking request-property-type-specialized'],
    },
    {
      edit: ['size: { type: integer }', 'size: { type: string }'],
      there: ['breaking request-property-type-changed'],
      back: ['breaking request-property-type-changed'],
    },
    {
      edit: ['size: { type: integer }', 'size: { type: integer, nullable: true }'],
      there: ['safe request-property-became-nullable'],
      back: ['breaking request-property-became-not-nullable'],
    },
    {
      edit: ['size: { type: integer }', 'size: { type: integer, default: 3 }'],
      there: ['risky request-property-default-value-changed'],
      back: ['risky request-property-default-value-changed'],
    },
    {
      edit: ['size: { type: integer }', 'size: { type: integer, multipleOf: 2 }'],
      there: ['risky request-property-schema-changed'],
      back: ['risky request-property-schema-changed'],
    },
    {
      edit: ['                size: { type: integer }\n', ''],
      there: ['breaking request-property-removed'],
      back: ['safe new-optional-request-property'],
    },
    {
      edit: [
        '                    old: { type: string }\n',
        '                    new: { type: string }\n',
      ],
      there: ['risky request-property-removed', 'safe new-optional-request-property'],
      back: ['risky request-property-removed', 'safe new-optional-request-property'],
    },
    {
      edit: ['required: [title]\n', 'required: [title, size]\n'],
      there: ['breaking request-property-became-required'],
      back: ['safe request-property-became-optional'],
    },
    {
      edit: [
        'required: [title]\n              additionalProperties: false\n              properties:\n',
        'required: [title, who]\n              additionalProperties: false\n              properties:\n                who: { type: string }\n',
      ],
      there: ['breaking new-required-request-property'],
      back: ['breaking request-property-removed'],
    },
    {
      edit: ['additionalProperties: false', 'additionalProperties: true'],
      there: ['safe request-body-additional-properties-allowed'],
      back: ['breaking request-body-additional-properties-disallowed'],
    },
    {
      edit: ["maxLength: 20, pattern: '^x'", "maxLength: 10, pattern: '^x'"],
      there: ['breaking request-property-max-length-decreased'],
      back: ['safe request-property-max-length-increased'],
    },
    {
      edit: ["minLength: 2, maxLength: 20, pattern: '^x'", "maxLength: 20, pattern: '^x'"],
      there: ['safe request-property-min-length-decreased'],
      back: ['breaking request-property-min-length-increased'],
    },
    {
      edit: [", pattern: '^x'", ''],
      there: ['safe request-property-pattern-removed'],
      back: ['breaking request-property-pattern-added'],
    },
    {
      edit: ["pattern: '^x'", "pattern: '^y'"],
      there: ['risky request-property-pattern-changed'],
      back: ['risky request-property-pattern-changed'],
    },
    {
      edit: ['minItems: 1, maxItems: 5', 'minItems: 2, maxItems: 6'],
      there: [
        'breaking request-property-min-items-increased',
        'safe request-property-max-items-increased',
      ],
      back: [
        'breaking request-property-max-items-decreased',
        'safe request-property-min-items-decreased',
      ],
    },
    {
      edit: [
        "                    - { $ref: '#/components/schemas/Team' }\n      responses",
        '      responses',
      ],
      there: ['breaking request-property-one-of-removed'],
      back: ['safe request-property-one-of-added'],
    },
  ],
  responses: [
    {
      edit: ["        '404': { description: None. }\n", ''],
      there: ['safe response-non-success-status-removed'],
      back: ['safe response-non-success-status-added'],
    },
    {
      edit: ["'201': {", "'202': {"],
      there: ['breaking response-success-status-removed', 'safe response-success-status-added'],
      back: ['breaking response-success-status-removed', 'safe response-success-status-added'],
    },
    {
      edit: ['            ETag: { required: true, schema: { type: string } }\n', ''],
      there: ['breaking required-response-header-removed'],
      back: ['safe response-header-added'],
    },
    {
      edit: ['            X-Hint: { schema: { type: string } }\n', ''],
      there: ['risky optional-response-header-removed'],
      back: ['safe response-header-added'],
    },
    {
      edit: ['ETag: { required: true,', 'ETag: { required: false,'],
      there: ['breaking response-header-became-optional'],
      back: ['safe response-header-became-required'],
    },
    {
      edit: [
        '            X-Hint: { schema: { type: string } }\n          content:\n            application/json:',
        '            X-Hint: { schema: { type: string } }\n          content:\n            text/csv:',
      ],
      there: ['breaking response-media-type-removed', 'safe response-media-type-added'],
      back: ['breaking response-media-type-removed', 'safe response-media-type-added'],
    },
    {
      edit: ['count: { type: integer, minimum: 0', 'count: { type: number, minimum: 0'],
      there: ['breaking response-property-type-generalized'],
      back: ['safe response-property-type-specialized'],
    },
    {
      edit: [
        'count: { type: integer, minimum: 0, maximum: 9 }',
        'count: { type: integer, minimum: -1, maximum: 8 }',
      ],
      there: ['breaking response-property-min-decreased', 'safe response-property-max-decreased'],
      back: ['breaking response-property-max-increased', 'safe response-property-min-increased'],
    },
    {
      edit: [
        'title: { type: string, minLength: 2, maxLength: 20 }',
        'title: { type: string, minLength: 1, maxLength: 30 }',
      ],
      there: [
        'breaking response-property-max-length-increased',
        'breaking response-property-min-length-decreased',
      ],
      back: [
        'safe response-property-max-length-decreased',
        'safe response-property-min-length-increased',
      ],
    },
    {
      edit: [
        '        colour: { type: string, enum: [red, green] }\n        due_at',
        '        colour: { type: string, enum: [red, green, blue] }\n        due_at',
      ],
      there: ['risky response-property-enum-value-added'],
      back: ['safe response-property-enum-value-removed'],
    },
    {
      edit: ['format: date-time, nullable: true', 'format: date-time'],
      there: ['safe response-property-became-not-nullable'],
      back: ['breaking response-property-became-nullable'],
    },
    {
      edit: ['format: date-time, nullable: true', 'nullable: true'],
      there: ['risky response-property-format-removed'],
      back: ['safe response-property-format-added'],
    },
    {
      edit: ['format: date-time, nullable: true', 'format: date, nullable: true'],
      there: ['breaking response-property-format-changed'],
      back: ['breaking response-property-format-changed'],
    },
    {
      edit: [', uniqueItems: true', ''],
      there: ['risky response-property-unique-items-removed'],
      back: ['safe response-property-unique-items-added'],
    },
    {
      edit: [
        'tags: { type: array, items: { type: string }, uniqueItems',
        'tags: { type: array, items: { type: integer }, uniqueItems',
      ],
      there: ['breaking response-property-type-changed'],
      back: ['breaking response-property-type-changed'],
    },
    {
      edit: [
        '        title: { type: string, minLength: 2, maxLength: 20 }\n        count',
        '        count',
      ],
      there: ['breaking response-required-property-removed'],
      back: ['safe response-required-property-added'],
    },
    {
      edit: ['        tags: { type: array, items: { type: string }, uniqueItems: true }\n', ''],
      there: ['risky response-optional-property-removed'],
      back: ['safe response-optional-property-added'],
    },
    {
      edit: ["        note: { type: string, deprecated: true, x-sunset: '2026-06-01' }\n", ''],
      there: ['safe response-optional-property-removed'],
      back: ['safe response-optional-property-added'],
      today: AFTER_SUNSET,
    },
    {
      edit: ['required: [title, count]', 'required: [title]'],
      there: ['breaking response-property-became-optional'],
      back: ['safe response-property-became-required'],
    },
    {
      edit: [
        "            - { $ref: '#/components/schemas/Team' }\n        parent",
        '        parent',
      ],
      there: ['safe response-property-one-of-removed'],
      back: ['breaking response-property-one-of-added'],
    },
    {
      edit: [
        "        owner:\n          oneOf:\n            - { $ref: '#/components/schemas/Person' }\n            - { $ref: '#/components/schemas/Team' }\n        parent",
        "        owner: { $ref: '#/components/schemas/Person' }\n        parent",
      ],
      there: ['safe response-property-one-of-removed'],
      back: ['breaking response-property-one-of-added'],
    },
    { edit: ['description: A note.', 'description: One note.'], there: [], back: [] },
  ],
  events: [
    {
      edit: [LOST, ''],
      also: SILENT,
      there: ['breaking event-removed-before-sunset'],
      back: ['safe event-added'],
    },
    {
      edit: [LOST, ''],
      also: SILENT,
      there: ['safe event-removed-with-deprecation'],
      back: ['safe event-added'],
      today: AFTER_SUNSET,
    },
    {
      edit: [
        "      x-deprecated-since: '2026-01-01'\n      x-sunset: '2026-06-01'\n      headers",
        '      headers',
      ],
      there: [],
      back: ['safe event-deprecated'],
    },
    {
      edit: ['const: note.created }', 'const: note.created, maxLength: 30 }'],
      there: ['safe event-property-max-length-decreased'],
      back: ['breaking event-property-max-length-increased'],
    },
    {
      edit: ['const: note }', 'const: notes }'],
      there: ['breaking event-property-const-changed'],
      back: ['breaking event-property-const-changed'],
    },
    {
      edit: ['enum: [red] }', 'enum: [red, blue] }'],
      there: ['risky event-property-enum-value-added'],
      back: ['safe event-property-enum-value-removed'],
    },
    {
      edit: ['colour: { type: string, enum: [red] }, ', ''],
      there: ['breaking event-required-property-removed'],
      back: ['safe event-required-property-added'],
    },
    {
      edit: [', shade: { type: integer }', ''],
      there: ['risky event-optional-property-removed'],
      back: ['safe event-optional-property-added'],
    },
    {
      edit: ['shade: { type: integer }', 'shade: { type: string }'],
      there: ['breaking event-property-type-changed'],
      back: ['breaking event-property-type-changed'],
    },
    {
      edit: ['required: [colour]', 'required: []'],
      there: ['breaking event-property-became-optional'],
      back: ['safe event-property-became-required'],
    },
    {
      edit: ['x-signature: { type: string }', 'x-signature: { type: string, pattern: "^x" }'],
      there: ['safe event-header-pattern-added'],
      back: ['risky event-header-pattern-removed'],
    },
  ],
}

describe.each(Object.entries(CASES))('%s', (_, cases) => {
  test.each(cases.map((each) => ({ ...each, name: each.there.join(', ') || 'nothing' })))(
    '$name',
    async ({ edit, also, there, back, today = TODAY }) => {
      const found = await bothWays(also ? [edit, also] : [edit], today)
      expect({ there: say(found.there), back: say(found.back) }).toEqual({ there, back })
    },
  )
})

test('an event that is no longer on offer is gone for its subscribers', async () => {
  await using before = await newFolder()
  await using after = await newFolder(
    replaced(OPENAPI, ['x-emitted-by-system: [note.lost]\n', '']),
    replaced(ASYNCAPI, [
      '      name: note.lost\n',
      '      name: note.lost\n      x-subscribable: false\n',
    ]),
  )
  expect(say((await diff({ base: before.path, root: after.path })).changes)).toEqual([
    'breaking event-not-subscribable',
  ])
  expect(say((await diff({ base: after.path, root: before.path })).changes)).toEqual([
    'safe event-subscribable',
  ])
})

test('an operation and an event without any notice', async () => {
  await using before = await newFolder()
  const openapi = replaced(replaced(OPENAPI, [OLD, '']), [POST, '']).replace(
    'x-emitted-by-system: [note.lost]',
    'x-emitted-by-system: []',
  )
  await using after = await newFolder(
    openapi,
    ASYNCAPI.replace(event('NoteCreated', 'note.created'), '')
      .replace(LOST, '')
      .replace('  messages:', '  messages: {}'),
  )
  expect(
    say((await diff({ base: before.path, root: after.path, today: AFTER_SUNSET })).changes),
  ).toEqual([
    'breaking api-removed-without-deprecation',
    'breaking event-removed-without-deprecation',
    'safe api-path-removed-with-deprecation',
    'safe event-removed-with-deprecation',
  ])
})

test('every rule is seen here', () => {
  const inCases = Object.values(CASES).flatMap((cases) =>
    cases.flatMap(({ there, back }) => [...there, ...back]),
  )
  const below = [
    'event-removed-without-deprecation',
    'event-not-subscribable',
    'event-subscribable',
  ]
  const seen = new Set([...inCases.map((text) => text.replace(/^\w+ /, '')), ...below])
  expect(Object.keys(RULES).filter((id) => !seen.has(id))).toEqual([])
  const subjects = [
    'request-parameter',
    'request-body',
    'request-property',
    'response-property',
    'event-property',
  ]
  const changes = Object.keys(SCHEMA_RULES) as SchemaChange[]
  expect(
    changes.filter(
      (change) => !subjects.some((subject) => seen.has(idOfSchemaChange(subject, change))),
    ),
  ).toEqual([])
})

test('a part that operations share is one change, with its line and all that it concerns', async () => {
  await using before = await newFolder()
  await using after = await newFolder(
    replaced(OPENAPI, [
      '        tags: { type: array, items: { type: string }, uniqueItems: true }\n',
      '',
    ]),
  )
  const line = OPENAPI.slice(
    0,
    OPENAPI.indexOf('        tags: { type: array, items: { type: string }, uniqueItems'),
  ).split('\n').length
  expect((await diff({ base: before.path, root: after.path })).changes).toEqual([
    {
      id: 'response-optional-property-removed',
      level: 'risky',
      file: 'openapi.yaml',
      line,
      isGone: true,
      concerns: ['listNotes', 'getNote'],
      part: '`tags` of the response 200',
      what: 'is gone',
    },
  ])
})

test('muster diff: against a git revision, with JUnit and a changelog; exit status 1 for what breaks', async () => {
  await using muster = await newMuster()
  await using folder = await newFolder()
  const git = (...args: string[]) =>
    run('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.com', ...args], {
      cwd: folder.path,
    })
  await git('init', '--quiet')
  await git('add', '.')
  await git('commit', '--quiet', '--message', 'first')
  const args = ['diff', 'HEAD', '--revision', folder.path]
  expect(await muster.run(args)).toMatchObject({
    status: 0,
    stdout: 'No change for clients or receivers.\n',
  })

  await folder.write(
    replaced(OPENAPI, ['version: 1.0.0', 'version: 1.1.0']).replace(
      POST,
      `${POST}    delete: { operationId: deleteNotes, responses: { '204': { description: Done. } } }\n`,
    ),
    ASYNCAPI,
  )
  const report = join(folder.path, 'diff.xml')
  const safe = await muster.run([...args, '--changelog', '--junit', report])
  expect(safe).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(
      /^safe {6}openapi\.yaml:\d+ endpoint-added — deleteNotes: DELETE \/notes is new\.\n\n0 breaking, 0 risky, 1 safe\n$/,
    ),
  })
  expect(await readFile(report, 'utf8')).toContain('tests="1" failures="0"')
  const day = new Date().toISOString().slice(0, 10)
  const entry = `## 1.1.0 · ${day}\n\n### New, and of no consequence for what exists\n\n- \`deleteNotes\`: DELETE /notes is new.\n`
  expect(await readFile(join(folder.path, 'CHANGELOG.md'), 'utf8')).toBe(`# Changelog\n\n${entry}`)

  await folder.write(
    replaced(replaced(OPENAPI, ['version: 1.0.0', 'version: 2.0.0']), [
      'required: [title]\n',
      'required: [title, size]\n',
    ]),
    ASYNCAPI,
  )
  const breaking = await muster.run([...args, '--changelog', '--junit', report])
  expect(breaking).toMatchObject({
    status: 1,
    stdout: expect.stringContaining(
      'request-property-became-required — createNote: `size` of the request body is required.',
    ),
  })
  expect(await readFile(report, 'utf8')).toMatch(
    /failures="1">\s+<testcase classname="openapi\.yaml" name="request-property-became-required: .*"><failure message="/,
  )
  const changelog = await readFile(join(folder.path, 'CHANGELOG.md'), 'utf8')
  expect(changelog).toBe(
    `# Changelog\n\n## 2.0.0 · ${day}\n\n### Breaking\n\n- \`createNote\`: \`size\` of the request body is required.\n\n${entry}`,
  )
  await muster.run([...args, '--changelog'])
  expect(await readFile(join(folder.path, 'CHANGELOG.md'), 'utf8')).toBe(changelog)

  const document = JSON.parse((await muster.run([...args, '--json'])).stdout)
  expect(document).toMatchObject({
    from: '1.0.0',
    to: '2.0.0',
    changes: [{ id: 'request-property-became-required', level: 'breaking' }],
  })
  const lost = await muster.run(['diff', 'nowhere', '--revision', folder.path])
  expect(lost).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^nowhere is neither a folder nor a git revision/),
  })
})
