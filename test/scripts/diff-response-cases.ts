import { AFTER_SUNSET } from './diff-contract.ts'
import { type Case, NO_SYSTEM_EVENTS, NOTE_LOST } from './diff-edits.ts'

const TEAM_MAKER =
  '            - { type: object, required: [kind], properties: { kind: { type: string, enum: [team] } } }\n'

/** Changes of responses and events. */
export const RESPONSE_CASES: Record<string, Case[]> = {
  responses: [
    {
      edit: ["        '404': { description: None. }\n", ''],
      forward: ['safe response-non-success-status-removed'],
      backward: ['safe response-non-success-status-added'],
    },
    {
      edit: ["'201': {", "'202': {"],
      forward: ['breaking response-success-status-removed', 'safe response-success-status-added'],
      backward: ['breaking response-success-status-removed', 'safe response-success-status-added'],
    },
    {
      edit: ['            ETag: { required: true, schema: { type: string } }\n', ''],
      forward: ['breaking required-response-header-removed'],
      backward: ['safe response-header-added'],
    },
    {
      edit: ['            X-Hint: { schema: { type: string } }\n', ''],
      forward: ['breaking optional-response-header-removed'],
      backward: ['safe response-header-added'],
    },
    {
      edit: ['ETag: { required: true,', 'ETag: { required: false,'],
      forward: ['breaking response-header-became-optional'],
      backward: ['safe response-header-became-required'],
    },
    {
      edit: [
        '            X-Hint: { schema: { type: string } }\n          content:\n            application/json:',
        '            X-Hint: { schema: { type: string } }\n          content:\n            text/csv:',
      ],
      forward: ['breaking response-media-type-removed', 'safe response-media-type-added'],
      backward: ['breaking response-media-type-removed', 'safe response-media-type-added'],
    },
    {
      edit: ['count: { type: integer, minimum: 0', 'count: { type: number, minimum: 0'],
      forward: ['breaking response-property-type-generalized'],
      backward: ['safe response-property-type-specialized'],
    },
    {
      edit: [
        'count: { type: integer, minimum: 0, maximum: 9 }',
        'count: { type: integer, minimum: -1, maximum: 8 }',
      ],
      forward: ['breaking response-property-min-decreased', 'safe response-property-max-decreased'],
      backward: [
        'breaking response-property-max-increased',
        'safe response-property-min-increased',
      ],
    },
    {
      edit: [
        'title: { type: string, minLength: 2, maxLength: 20 }',
        'title: { type: string, minLength: 1, maxLength: 30 }',
      ],
      forward: [
        'breaking response-property-max-length-increased',
        'breaking response-property-min-length-decreased',
      ],
      backward: [
        'safe response-property-max-length-decreased',
        'safe response-property-min-length-increased',
      ],
    },
    {
      edit: [
        '        colour: { type: string, enum: [red, green] }\n        state',
        '        colour: { type: string, enum: [red, green, blue] }\n        state',
      ],
      forward: ['breaking response-property-enum-value-added'],
      backward: ['safe response-property-enum-value-removed'],
    },
    {
      edit: ['format: date-time, nullable: true', 'format: date-time'],
      forward: ['safe response-property-became-not-nullable'],
      backward: ['breaking response-property-became-nullable'],
    },
    {
      edit: ['format: date-time, nullable: true', 'nullable: true'],
      forward: ['breaking response-property-format-removed'],
      backward: ['safe response-property-format-added'],
    },
    {
      edit: ['format: date-time, nullable: true', 'format: date, nullable: true'],
      forward: ['breaking response-property-format-changed'],
      backward: ['breaking response-property-format-changed'],
    },
    {
      edit: [', uniqueItems: true', ''],
      forward: ['breaking response-property-unique-items-removed'],
      backward: ['safe response-property-unique-items-added'],
    },
    {
      edit: [
        'tags: { type: array, items: { type: string }, uniqueItems',
        'tags: { type: array, items: { type: integer }, uniqueItems',
      ],
      forward: ['breaking response-property-type-changed'],
      backward: ['breaking response-property-type-changed'],
    },
    {
      edit: [
        '        title: { type: string, minLength: 2, maxLength: 20 }\n        count',
        '        count',
      ],
      forward: ['breaking response-required-property-removed'],
      backward: ['safe response-required-property-added'],
    },
    {
      edit: ['        tags: { type: array, items: { type: string }, uniqueItems: true }\n', ''],
      forward: ['breaking response-optional-property-removed'],
      backward: ['safe response-optional-property-added'],
    },
    {
      edit: ["        note: { type: string, deprecated: true, x-sunset: '2026-06-01' }\n", ''],
      forward: ['safe response-optional-property-removed'],
      backward: ['safe response-optional-property-added'],
      today: AFTER_SUNSET,
    },
    {
      edit: ['required: [title, count]', 'required: [title]'],
      forward: ['breaking response-property-became-optional'],
      backward: ['safe response-property-became-required'],
    },
    {
      edit: [
        "            - { $ref: '#/components/schemas/Team' }\n        parent",
        '        parent',
      ],
      forward: ['safe response-property-one-of-removed'],
      backward: ['breaking response-property-one-of-added'],
    },
    {
      edit: [
        "        owner:\n          oneOf:\n            - { $ref: '#/components/schemas/Person' }\n            - { $ref: '#/components/schemas/Team' }\n        parent",
        "        owner: { $ref: '#/components/schemas/Person' }\n        parent",
      ],
      forward: ['safe response-property-one-of-removed'],
      backward: ['breaking response-property-one-of-added'],
    },
    {
      edit: [
        'count: { type: integer, minimum: 0, maximum: 9 }',
        'count: { oneOf: [{ type: integer, minimum: 0, maximum: 4 }, { type: integer, minimum: 5, maximum: 9 }] }',
      ],
      forward: ['safe response-property-one-of-split'],
      backward: [
        'breaking response-property-max-increased',
        'safe response-property-one-of-removed',
      ],
    },
    {
      edit: [TEAM_MAKER, TEAM_MAKER + TEAM_MAKER.replace('team', 'robot')],
      forward: ['risky response-property-dependent-one-of-added'],
      backward: ['safe response-property-one-of-removed'],
    },
    { edit: ['description: A note.', 'description: One note.'], forward: [], backward: [] },
  ],
  events: [
    {
      edit: [NOTE_LOST, ''],
      also: NO_SYSTEM_EVENTS,
      forward: ['breaking event-removed-before-sunset'],
      backward: ['safe event-added'],
    },
    {
      edit: [NOTE_LOST, ''],
      also: NO_SYSTEM_EVENTS,
      forward: ['safe event-removed-with-deprecation'],
      backward: ['safe event-added'],
      today: AFTER_SUNSET,
    },
    {
      edit: [
        "      x-deprecated-since: '2026-01-01'\n      x-sunset: '2026-06-01'\n      headers",
        '      headers',
      ],
      forward: ['safe event-reactivated'],
      backward: ['breaking event-sunset-date-too-small', 'safe event-deprecated'],
    },
    {
      edit: ['const: note.created }', 'const: note.created, maxLength: 30 }'],
      forward: ['safe event-property-max-length-decreased'],
      backward: ['breaking event-property-max-length-increased'],
    },
    {
      edit: ['const: note }', 'const: notes }'],
      forward: ['breaking event-property-const-changed'],
      backward: ['breaking event-property-const-changed'],
    },
    {
      edit: ['enum: [red] }', 'enum: [red, blue] }'],
      forward: ['breaking event-property-enum-value-added'],
      backward: ['safe event-property-enum-value-removed'],
    },
    {
      edit: ['colour: { type: string, enum: [red] }, ', ''],
      forward: ['breaking event-required-property-removed'],
      backward: ['safe event-required-property-added'],
    },
    {
      edit: [', shade: { type: integer, multipleOf: 3 }', ''],
      forward: ['breaking event-optional-property-removed'],
      backward: ['safe event-optional-property-added'],
    },
    {
      edit: ['shade: { type: integer, multipleOf: 3 }', 'shade: { type: string, multipleOf: 3 }'],
      forward: ['breaking event-property-type-changed'],
      backward: ['breaking event-property-type-changed'],
    },
    {
      edit: ['required: [colour]', 'required: []'],
      forward: ['breaking event-property-became-optional'],
      backward: ['safe event-property-became-required'],
    },
    {
      edit: ['x-signature: { type: string }', 'x-signature: { type: string, pattern: "^x" }'],
      forward: ['safe event-header-pattern-added'],
      backward: ['breaking event-header-pattern-removed'],
    },
  ],
}
