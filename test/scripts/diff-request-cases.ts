import { AFTER_SUNSET } from './diff-contract.ts'
import { BODY, type Case, LIST, MIXED, NOTE, OLD } from './diff-edits.ts'

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
      back: ['breaking api-sunset-date-too-small'],
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
      there: ['code api-operation-id-removed'],
      back: ['code api-operation-id-removed'],
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
      back: ['breaking api-event-removed'],
    },
  ],
  parameters: [
    {
      edit: ['        - { name: If-None-Match, in: header, schema: { type: string } }\n', ''],
      there: ['breaking request-parameter-removed'],
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
    {
      edit: [
        '  /notes/{note}:\n    get:\n      operationId: getNote\n      parameters:\n        - { name: note,',
        '  /notes/{id}:\n    get:\n      operationId: getNote\n      parameters:\n        - { name: id,',
      ],
      there: ['code api-path-parameter-renamed'],
      back: ['code api-path-parameter-renamed'],
    },
  ],
  'request bodies': [
    {
      edit: [BODY, ''],
      there: ['breaking request-body-removed'],
      back: ['safe request-body-added-optional'],
    },
    {
      edit: ['requestBody:\n', 'requestBody:\n        required: true\n'],
      there: ['breaking request-body-became-required'],
      back: ['safe request-body-became-optional'],
    },
    {
      edit: [
        'operationId: createMixed\n',
        'operationId: createMixed\n      requestBody: { required: true, content: { application/json: { schema: { type: object } } } }\n',
      ],
      there: ['breaking request-body-added-required'],
      back: ['breaking request-body-removed'],
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
      edit: ['size: { type: integer }', 'size: { type: integer, format: int64 }'],
      there: ['code request-property-number-format-added'],
      back: ['code request-property-number-format-removed'],
    },
    {
      edit: ['size: { type: integer }', 'size: { type: integer, format: int32 }'],
      there: ['breaking request-property-format-added'],
      back: ['safe request-property-format-removed'],
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
      there: ['breaking request-property-default-value-changed'],
      back: ['breaking request-property-default-value-changed'],
    },
    {
      edit: ['size: { type: integer }', 'size: { type: integer, multipleOf: 2 }'],
      there: ['breaking request-property-constraint-added'],
      back: ['safe request-property-constraint-removed'],
    },
    {
      edit: [
        'meta:\n                  type: object\n',
        'meta:\n                  type: object\n                  minProperties: 1\n                  maxProperties: 2\n',
      ],
      there: [
        'breaking request-property-max-properties-decreased',
        'breaking request-property-min-properties-increased',
      ],
      back: [
        'safe request-property-max-properties-increased',
        'safe request-property-min-properties-decreased',
      ],
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
      there: ['breaking request-property-removed', 'safe new-optional-request-property'],
      back: ['breaking request-property-removed', 'safe new-optional-request-property'],
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
      edit: [
        'old: { type: string }',
        "old: { type: string, pattern: '^\\s*[^\\s\\x00][^\\x00]*$' }",
      ],
      there: ['risky request-property-blank-text-refused'],
      back: ['safe request-property-pattern-removed'],
    },
    {
      edit: ['old: { type: string }', "old: { type: string, pattern: '^[^\\x00]*$' }"],
      there: ['safe request-property-nul-refused'],
      back: ['safe request-property-pattern-removed'],
    },
    {
      edit: [META, SPLIT_META],
      there: ['safe request-property-dependent-one-of-added'],
      back: ['breaking request-property-one-of-removed'],
    },
    {
      edit: ["pattern: '^x'", "pattern: '^y'"],
      there: ['breaking request-property-pattern-changed'],
      back: ['breaking request-property-pattern-changed'],
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
}
