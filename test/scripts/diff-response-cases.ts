import { AFTER_SUNSET } from './diff-contract.ts'
import { type Case, LOST, SILENT } from './diff-edits.ts'

const TEAM_MAKER =
  '            - { type: object, required: [kind], properties: { kind: { type: string, enum: [team] } } }\n'

/** Changes of responses and events. */
export const RESPONSE_CASES: Record<string, Case[]> = {
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
      there: ['breaking optional-response-header-removed'],
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
        '        colour: { type: string, enum: [red, green] }\n        state',
        '        colour: { type: string, enum: [red, green, blue] }\n        state',
      ],
      there: ['breaking response-property-enum-value-added'],
      back: ['safe response-property-enum-value-removed'],
    },
    {
      edit: ['format: date-time, nullable: true', 'format: date-time'],
      there: ['safe response-property-became-not-nullable'],
      back: ['breaking response-property-became-nullable'],
    },
    {
      edit: ['format: date-time, nullable: true', 'nullable: true'],
      there: ['breaking response-property-format-removed'],
      back: ['safe response-property-format-added'],
    },
    {
      edit: ['format: date-time, nullable: true', 'format: date, nullable: true'],
      there: ['breaking response-property-format-changed'],
      back: ['breaking response-property-format-changed'],
    },
    {
      edit: [', uniqueItems: true', ''],
      there: ['breaking response-property-unique-items-removed'],
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
      there: ['breaking response-optional-property-removed'],
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
    {
      edit: [
        'count: { type: integer, minimum: 0, maximum: 9 }',
        'count: { oneOf: [{ type: integer, minimum: 0, maximum: 4 }, { type: integer, minimum: 5, maximum: 9 }] }',
      ],
      there: ['safe response-property-one-of-split'],
      back: ['breaking response-property-max-increased', 'safe response-property-one-of-removed'],
    },
    {
      edit: [TEAM_MAKER, TEAM_MAKER + TEAM_MAKER.replace('team', 'robot')],
      there: ['risky response-property-dependent-one-of-added'],
      back: ['safe response-property-one-of-removed'],
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
      there: ['safe event-reactivated'],
      back: ['breaking event-sunset-date-too-small', 'safe event-deprecated'],
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
      there: ['breaking event-property-enum-value-added'],
      back: ['safe event-property-enum-value-removed'],
    },
    {
      edit: ['colour: { type: string, enum: [red] }, ', ''],
      there: ['breaking event-required-property-removed'],
      back: ['safe event-required-property-added'],
    },
    {
      edit: [', shade: { type: integer, multipleOf: 3 }', ''],
      there: ['breaking event-optional-property-removed'],
      back: ['safe event-optional-property-added'],
    },
    {
      edit: ['shade: { type: integer, multipleOf: 3 }', 'shade: { type: string, multipleOf: 3 }'],
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
      back: ['breaking event-header-pattern-removed'],
    },
  ],
}
