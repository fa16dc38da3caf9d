import { AFTER_SUNSET } from './diff-contract.ts'
import {
  type Case,
  CREATE_NOTE_BODY,
  GET_MIXED,
  LIST_NOTES,
  NOTE_PATH,
  OLD_PATH,
} from './diff-edits.ts'

const META = `type: object
                  properties:
                    old: { type: string }`
const SPLIT_META = `oneOf:
                    - { type: object, required: [kind], properties: { kind: { type: string, enum: [a] } } }
                    - { type: object, properties: { old: { type: string } } }`

/** Changes of operations, parameters and request bodies. */
export const REQUEST_CASES: Record<string, Case[]> = {
  operations: [
    {
      edit: [OLD_PATH, ''],
      forward: ['breaking api-path-removed-before-sunset'],
      backward: ['safe endpoint-added'],
    },
    {
      edit: [OLD_PATH, ''],
      forward: ['safe api-path-removed-with-deprecation'],
      backward: ['safe endpoint-added'],
      today: AFTER_SUNSET,
    },
    {
      edit: [NOTE_PATH, ''],
      forward: ['breaking api-path-removed-without-deprecation'],
      backward: ['safe endpoint-added'],
    },
    {
      edit: [GET_MIXED, ''],
      forward: ['breaking api-removed-before-sunset'],
      backward: ['safe endpoint-added'],
    },
    {
      edit: [GET_MIXED, ''],
      forward: ['safe api-removed-with-deprecation'],
      backward: ['safe endpoint-added'],
      today: AFTER_SUNSET,
    },
    {
      edit: [LIST_NOTES, ''],
      forward: ['breaking api-removed-without-deprecation'],
      backward: ['safe endpoint-added'],
    },
    {
      edit: ["      x-sunset: '2026-06-01'\n      responses", '      responses'],
      forward: [],
      backward: ['breaking api-sunset-date-too-small'],
    },
    {
      edit: ["x-sunset: '2026-06-01'\n      responses", "x-sunset: '2026-04-01'\n      responses"],
      forward: ['breaking api-sunset-date-changed-too-small'],
      backward: [],
    },
    {
      edit: [
        'operationId: getNote',
        "operationId: getNote\n      deprecated: true\n      x-deprecated-since: '2026-01-01'",
      ],
      forward: ['safe endpoint-deprecated'],
      backward: ['safe endpoint-reactivated'],
    },
    {
      edit: ['operationId: getNote', 'operationId: readNote'],
      forward: ['code api-operation-id-removed'],
      backward: ['code api-operation-id-removed'],
    },
    {
      edit: ['operationId: getNote', 'operationId: getNote\n      x-permission: finance'],
      forward: ['breaking api-security-scope-added'],
      backward: ['safe api-security-scope-removed'],
    },
    {
      edit: [
        'operationId: getNote',
        'operationId: getNote\n      x-rate-limit: { limit: 5, window_seconds: 60 }',
      ],
      forward: ['risky api-rate-limit-decreased'],
      backward: ['safe api-rate-limit-increased'],
    },
    {
      edit: ['x-emits: [note.created]', 'x-emits: [note.created, note.lost]'],
      forward: ['safe api-event-added'],
      backward: ['breaking api-event-removed'],
    },
  ],
  parameters: [
    {
      edit: ['        - { name: If-None-Match, in: header, schema: { type: string } }\n', ''],
      forward: ['breaking request-parameter-removed'],
      backward: ['safe new-optional-request-parameter'],
    },
    {
      edit: ['name: page, in: query', 'name: side, in: query'],
      forward: ['breaking request-parameter-removed', 'safe new-optional-request-parameter'],
      backward: ['breaking request-parameter-removed', 'safe new-optional-request-parameter'],
    },
    {
      edit: ['name: page, in: query', 'name: page, in: query, required: true'],
      forward: ['breaking request-parameter-became-required'],
      backward: ['safe request-parameter-became-optional'],
    },
    {
      edit: [
        '        - { name: page, in',
        '        - { name: who, in: query, required: true, schema: { type: string } }\n        - { name: page, in',
      ],
      forward: ['breaking new-required-request-parameter'],
      backward: ['breaking request-parameter-removed'],
    },
    {
      edit: ['maximum: 9, default: 1', 'maximum: 8, default: 1'],
      forward: ['breaking request-parameter-max-decreased'],
      backward: ['safe request-parameter-max-increased'],
    },
    {
      edit: ['schema: { type: array, items: { type: string } }', 'schema: { type: string }'],
      forward: [
        'breaking request-parameter-type-changed',
        'safe request-parameter-constraint-removed',
      ],
      backward: ['code request-parameter-became-list'],
    },
    {
      edit: ['default: 1 }', 'default: 2 }'],
      forward: ['breaking request-parameter-default-value-changed'],
      backward: ['breaking request-parameter-default-value-changed'],
    },
    {
      edit: [
        '  /notes/{note}:\n    get:\n      operationId: getNote\n      parameters:\n        - { name: note,',
        '  /notes/{id}:\n    get:\n      operationId: getNote\n      parameters:\n        - { name: id,',
      ],
      forward: ['code api-path-parameter-renamed'],
      backward: ['code api-path-parameter-renamed'],
    },
  ],
  'request bodies': [
    {
      edit: [CREATE_NOTE_BODY, ''],
      forward: ['breaking request-body-removed'],
      backward: ['safe request-body-added-optional'],
    },
    {
      edit: ['requestBody:\n', 'requestBody:\n        required: true\n'],
      forward: ['breaking request-body-became-required'],
      backward: ['safe request-body-became-optional'],
    },
    {
      edit: [
        'operationId: createMixed\n',
        'operationId: createMixed\n      requestBody: { required: true, content: { application/json: { schema: { type: object } } } }\n',
      ],
      forward: ['breaking request-body-added-required'],
      backward: ['breaking request-body-removed'],
    },
    {
      edit: [
        'colour: { type: string, enum: [red, green] }\n                size',
        'colour: { type: string, enum: [red] }\n                size',
      ],
      forward: ['breaking request-property-enum-value-removed'],
      backward: ['safe request-property-enum-value-added'],
    },
    {
      edit: [
        'colour: { type: string, enum: [red, green] }\n                size',
        'colour: { type: string }\n                size',
      ],
      forward: ['safe request-property-enum-unset'],
      backward: ['breaking request-property-became-enum'],
    },
    {
      edit: ['size: { type: integer }', 'size: { type: number }'],
      forward: ['safe request-property-type-generalized'],
      backward: ['breaking request-property-type-specialized'],
    },
    {
      edit: ['size: { type: integer }', 'size: {}'],
      forward: ['safe request-property-type-generalized'],
      backward: ['breaking request-property-type-specialized'],
    },
    {
      edit: ['size: { type: integer }', 'size: { type: integer, format: int64 }'],
      forward: ['code request-property-number-format-added'],
      backward: ['code request-property-number-format-removed'],
    },
    {
      edit: ['size: { type: integer }', 'size: { type: integer, format: int32 }'],
      forward: ['breaking request-property-format-added'],
      backward: ['safe request-property-format-removed'],
    },
    {
      edit: ['size: { type: integer }', 'size: { type: string }'],
      forward: ['breaking request-property-type-changed'],
      backward: ['breaking request-property-type-changed'],
    },
    {
      edit: ['size: { type: integer }', 'size: { type: integer, nullable: true }'],
      forward: ['safe request-property-became-nullable'],
      backward: ['breaking request-property-became-not-nullable'],
    },
    {
      edit: ['size: { type: integer }', 'size: { type: integer, default: 3 }'],
      forward: ['breaking request-property-default-value-changed'],
      backward: ['breaking request-property-default-value-changed'],
    },
    {
      edit: ['size: { type: integer }', 'size: { type: integer, multipleOf: 2 }'],
      forward: ['breaking request-property-constraint-added'],
      backward: ['safe request-property-constraint-removed'],
    },
    {
      edit: [
        'meta:\n                  type: object\n',
        'meta:\n                  type: object\n                  minProperties: 1\n                  maxProperties: 2\n',
      ],
      forward: [
        'breaking request-property-max-properties-decreased',
        'breaking request-property-min-properties-increased',
      ],
      backward: [
        'safe request-property-max-properties-increased',
        'safe request-property-min-properties-decreased',
      ],
    },
    {
      edit: ['                size: { type: integer }\n', ''],
      forward: ['breaking request-property-removed'],
      backward: ['safe new-optional-request-property'],
    },
    {
      edit: [
        '                    old: { type: string }\n',
        '                    new: { type: string }\n',
      ],
      forward: ['breaking request-property-removed', 'safe new-optional-request-property'],
      backward: ['breaking request-property-removed', 'safe new-optional-request-property'],
    },
    {
      edit: ['required: [title]\n', 'required: [title, size]\n'],
      forward: ['breaking request-property-became-required'],
      backward: ['safe request-property-became-optional'],
    },
    {
      edit: [
        'required: [title]\n              additionalProperties: false\n              properties:\n',
        'required: [title, who]\n              additionalProperties: false\n              properties:\n                who: { type: string }\n',
      ],
      forward: ['breaking new-required-request-property'],
      backward: ['breaking request-property-removed'],
    },
    {
      edit: ['additionalProperties: false', 'additionalProperties: true'],
      forward: ['safe request-body-additional-properties-allowed'],
      backward: ['breaking request-body-additional-properties-disallowed'],
    },
    {
      edit: ["maxLength: 20, pattern: '^x'", "maxLength: 10, pattern: '^x'"],
      forward: ['breaking request-property-max-length-decreased'],
      backward: ['safe request-property-max-length-increased'],
    },
    {
      edit: ["minLength: 2, maxLength: 20, pattern: '^x'", "maxLength: 20, pattern: '^x'"],
      forward: ['safe request-property-min-length-decreased'],
      backward: ['breaking request-property-min-length-increased'],
    },
    {
      edit: [", pattern: '^x'", ''],
      forward: ['safe request-property-pattern-removed'],
      backward: ['breaking request-property-pattern-added'],
    },
    {
      edit: [
        'old: { type: string }',
        "old: { type: string, pattern: '^\\s*[^\\s\\x00][^\\x00]*$' }",
      ],
      forward: ['risky request-property-blank-text-refused'],
      backward: ['safe request-property-pattern-removed'],
    },
    {
      edit: ['old: { type: string }', "old: { type: string, pattern: '^[^\\x00]*$' }"],
      forward: ['safe request-property-nul-refused'],
      backward: ['safe request-property-pattern-removed'],
    },
    {
      edit: [META, SPLIT_META],
      forward: ['safe request-property-dependent-one-of-added'],
      backward: ['breaking request-property-one-of-removed'],
    },
    {
      edit: ["pattern: '^x'", "pattern: '^y'"],
      forward: ['breaking request-property-pattern-changed'],
      backward: ['breaking request-property-pattern-changed'],
    },
    {
      edit: ['minItems: 1, maxItems: 5', 'minItems: 2, maxItems: 6'],
      forward: [
        'breaking request-property-min-items-increased',
        'safe request-property-max-items-increased',
      ],
      backward: [
        'breaking request-property-max-items-decreased',
        'safe request-property-min-items-decreased',
      ],
    },
    {
      edit: [
        "                    - { $ref: '#/components/schemas/Team' }\n      responses",
        '      responses',
      ],
      forward: ['breaking request-property-one-of-removed'],
      backward: ['safe request-property-one-of-added'],
    },
  ],
}
