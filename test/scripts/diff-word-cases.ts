/** Changes of words, the keywords that begin with `x-`, and what `diff` says about each. Those in
 *  schemas are in diff-schema-word-cases.ts. */

export interface WordCase {
  /** The key in `WORD_RULES`. */
  rule: string
  at: keyof typeof PARTS
  /** The word before and after the change. */
  words: [before: string, after: string]
  /** Level, rule and sentence. */
  forward: string[]
  /** From `after` to `before`. */
  backward: string[]
}

/** What sentences call each part of the contract. */
export const PARTS = {
  document: 'the contract',
  operation: 'POST /notes',
  parameter: 'the query parameter page',
  header: 'the header X-Hint of the response 200',
  schema: 'the response 200',
  delivery: 'each delivery',
} as const

const refusal = (condition: string): string =>
  `x-refusals: { title: { reason: Unique., ${condition} } }`
const emitsWhen = (condition: string): string =>
  `x-emits-when: { note.created: ${condition}, note.kept: { changes: [a] } }`

export const WORD_CASES: WordCase[] = [
  {
    rule: 'x-max-record-bytes',
    at: 'document',
    words: ['x-max-record-bytes: 20', 'x-max-record-bytes: 10'],
    forward: ['breaking x-max-record-bytes-decreased: has x-max-record-bytes: 10 instead of 20'],
    backward: ['safe x-max-record-bytes-increased: has x-max-record-bytes: 20 instead of 10'],
  },
  {
    rule: 'x-max-record-bytes',
    at: 'document',
    words: ['x-own: 1', 'x-max-record-bytes: 10'],
    forward: ['risky x-max-record-bytes-added: has x-max-record-bytes: 10'],
    backward: ['safe x-max-record-bytes-removed: no longer has x-max-record-bytes: 10'],
  },
  {
    rule: 'x-list-parameters',
    at: 'document',
    words: ['x-list-parameters: { spaces: ignored }', 'x-own: 1'],
    forward: [
      'breaking x-list-parameters-removed: no longer has x-list-parameters: {"spaces":"ignored"}',
    ],
    backward: [],
  },
  {
    rule: 'x-merge-patch',
    at: 'document',
    words: ['x-merge-patch: application/merge-patch+json', 'x-own: 1'],
    forward: [
      'breaking x-merge-patch-removed: no longer has x-merge-patch: "application/merge-patch+json"',
    ],
    backward: [],
  },
  {
    rule: 'x-lists',
    at: 'document',
    words: ['x-lists: { sort: { nulls: last } }', 'x-lists: { sort: { nulls: first } }'],
    forward: ['breaking x-lists-changed: has x-lists.sort.nulls: "first" instead of "last"'],
    backward: ['breaking x-lists-changed: has x-lists.sort.nulls: "last" instead of "first"'],
  },
  {
    rule: 'x-lists.sort.ties_follow',
    at: 'document',
    words: ['x-lists: { sort: {} }', 'x-lists: { sort: { ties_follow: last } }'],
    forward: ['breaking x-lists-added: has x-lists.sort.ties_follow: "last"'],
    backward: ['breaking x-lists-removed: no longer has x-lists.sort.ties_follow: "last"'],
  },
  {
    rule: 'x-lists.sort.twice',
    at: 'document',
    words: ['x-lists: { sort: {} }', 'x-lists: { sort: { twice: refused } }'],
    forward: ['risky x-lists-added: has x-lists.sort.twice: "refused"'],
    backward: ['safe x-lists-removed: no longer has x-lists.sort.twice: "refused"'],
  },
  {
    rule: 'x-response-headers',
    at: 'document',
    words: ['x-response-headers: [{ name: Vary }]', 'x-response-headers: []'],
    forward: [
      'breaking x-response-headers-removed: no longer has x-response-headers: {"name":"Vary"}',
    ],
    backward: [],
  },
  {
    rule: 'x-emits-when',
    at: 'operation',
    words: ['x-own: 1', 'x-emits-when: { note.created: { changes: [a] } }'],
    // The contract describes for the first time when an event is emitted.
    forward: [],
    backward: [
      'risky x-emits-when-removed: no longer has x-emits-when.note.created: {"changes":["a"]}',
    ],
  },
  {
    rule: 'x-emits-when.*',
    at: 'operation',
    words: ['x-emits-when: {}', 'x-emits-when: { note.created: { changes: [a] } }'],
    forward: ['breaking x-emits-when-added: has x-emits-when.note.created: {"changes":["a"]}'],
    backward: [
      'risky x-emits-when-removed: no longer has x-emits-when.note.created: {"changes":["a"]}',
    ],
  },
  {
    rule: 'x-emits-when.*.*',
    at: 'operation',
    words: [emitsWhen('{ changes: [a] }'), emitsWhen('{ changes: [b] }')],
    forward: [
      'breaking x-emits-when-removed: no longer has x-emits-when.note.created.changes: "a"',
      'breaking x-emits-when-added: has x-emits-when.note.created.changes: "b"',
    ],
    backward: [
      'breaking x-emits-when-removed: no longer has x-emits-when.note.created.changes: "b"',
      'breaking x-emits-when-added: has x-emits-when.note.created.changes: "a"',
    ],
  },
  {
    rule: 'x-emits-when.*.*',
    at: 'operation',
    // The operation does not emit note.kept.
    words: [emitsWhen('{ changes: [a] }'), 'x-emits-when: { note.created: { changes: [a] } }'],
    forward: [],
    backward: [],
  },
  {
    rule: 'x-event-list',
    at: 'operation',
    words: ['x-event-list: { id: /id }', 'x-event-list: { id: /event_id }'],
    forward: ['breaking x-event-list-changed: has x-event-list.id: "/event_id" instead of "/id"'],
    backward: ['breaking x-event-list-changed: has x-event-list.id: "/id" instead of "/event_id"'],
  },
  {
    rule: 'x-export-file',
    at: 'operation',
    words: ['x-export-file: { rows: count }', 'x-export-file: { rows: row_count }'],
    forward: [
      'breaking x-export-file-changed: has x-export-file.rows: "row_count" instead of "count"',
    ],
    backward: [
      'breaking x-export-file-changed: has x-export-file.rows: "count" instead of "row_count"',
    ],
  },
  {
    rule: 'x-forbidden-with',
    at: 'operation',
    words: ['x-forbidden-with: { kind: secret }', 'x-own: 1'],
    forward: [
      'breaking x-forbidden-with-removed: no longer has x-forbidden-with: {"kind":"secret"}',
    ],
    backward: [],
  },
  {
    rule: 'x-refusals',
    at: 'operation',
    words: ['x-refusals: { title: Unique. }', 'x-refusals: { title: Unique in the account. }'],
    forward: [],
    backward: [],
  },
  {
    rule: 'x-refusals.*',
    at: 'operation',
    words: ['x-refusals: {}', 'x-refusals: { title: Unique. }'],
    forward: ['breaking x-refusals-added: has x-refusals.title: "Unique."'],
    backward: ['safe x-refusals-removed: no longer has x-refusals.title: "Unique."'],
  },
  {
    rule: 'x-refusals.*',
    at: 'operation',
    words: ['x-refusals: { title: Unique. }', refusal('unique: true')],
    forward: [],
    backward: [],
  },
  {
    rule: 'x-refusals.*.reason',
    at: 'operation',
    words: [refusal('unique: true'), refusal('unique: true').replace('Unique.', 'Taken.')],
    forward: [],
    backward: [],
  },
  {
    rule: 'x-refusals.*.accepts',
    at: 'operation',
    words: [refusal('accepts: [{ title: a }]'), refusal('accepts: []')],
    forward: ['breaking x-refusals-removed: no longer has x-refusals.title.accepts: {"title":"a"}'],
    backward: [],
  },
  {
    rule: 'x-refusals.*.refuses',
    at: 'operation',
    words: [refusal('refuses: []'), refusal('refuses: [{ title: b }]')],
    forward: ['risky x-refusals-added: has x-refusals.title.refuses: {"title":"b"}'],
    backward: ['risky x-refusals-removed: no longer has x-refusals.title.refuses: {"title":"b"}'],
  },
  {
    rule: 'x-refusals.*.unique',
    at: 'operation',
    words: [refusal('accepts: []'), refusal('accepts: [], unique: true')],
    forward: ['risky x-refusals-added: has x-refusals.title.unique: true'],
    backward: ['risky x-refusals-removed: no longer has x-refusals.title.unique: true'],
  },
  {
    rule: 'x-refusals.*.ignore_case',
    at: 'operation',
    words: [refusal('unique: true'), refusal('unique: true, ignore_case: true')],
    forward: ['breaking x-refusals-added: has x-refusals.title.ignore_case: true'],
    backward: ['safe x-refusals-removed: no longer has x-refusals.title.ignore_case: true'],
  },
  {
    rule: 'x-filter',
    at: 'parameter',
    words: ['x-filter: { match: equals, fields: [a] }', 'x-own: 1'],
    forward: [
      'breaking x-filter-removed: no longer has x-filter: {"match":"equals","fields":["a"]}',
    ],
    backward: [],
  },
  {
    rule: 'x-filter.without',
    at: 'parameter',
    words: ['x-filter: { match: equals }', 'x-filter: { match: equals, without: none }'],
    forward: [],
    backward: ['breaking x-filter-removed: no longer has x-filter.without: "none"'],
  },
  {
    rule: 'x-filter.*',
    at: 'parameter',
    words: [
      'x-filter: { match: equals, fields: [a] }',
      'x-filter: { match: contains, fields: [a, b], ignore_case: true }',
    ],
    forward: [
      'breaking x-filter-changed: has x-filter.match: "contains" instead of "equals"',
      'breaking x-filter-added: has x-filter.fields: "b"',
      'breaking x-filter-added: has x-filter.ignore_case: true',
    ],
    backward: [
      'breaking x-filter-changed: has x-filter.match: "equals" instead of "contains"',
      'breaking x-filter-removed: no longer has x-filter.fields: "b"',
      'breaking x-filter-removed: no longer has x-filter.ignore_case: true',
    ],
  },
  {
    rule: 'x-idempotency-key',
    at: 'parameter',
    words: ['x-idempotency-key: {}', 'x-own: 1'],
    forward: ['breaking x-idempotency-key-removed: no longer has x-idempotency-key: {}'],
    backward: [],
  },
  {
    rule: 'x-scope',
    at: 'parameter',
    words: ['x-scope: user', 'x-own: 1'],
    forward: ['breaking x-scope-removed: no longer has x-scope: "user"'],
    backward: [],
  },
  {
    rule: 'x-at-most',
    at: 'header',
    words: ['x-at-most: 60', 'x-at-most: 90'],
    forward: ['breaking x-at-most-increased: has x-at-most: 90 instead of 60'],
    backward: ['safe x-at-most-decreased: has x-at-most: 60 instead of 90'],
  },
  {
    rule: 'x-counts-from',
    at: 'header',
    words: ['x-counts-from: X-Limit', 'x-own: 1'],
    forward: ['breaking x-counts-from-removed: no longer has x-counts-from: "X-Limit"'],
    backward: [],
  },
  {
    rule: 'x-counts-down',
    at: 'header',
    words: ['x-counts-down: true', 'x-counts-down: false'],
    forward: ['breaking x-counts-down-changed: has x-counts-down: false instead of true'],
    backward: ['breaking x-counts-down-changed: has x-counts-down: true instead of false'],
  },
  {
    rule: 'x-echoes',
    at: 'header',
    words: ['x-echoes: X-Request-Id', 'x-own: 1'],
    forward: ['breaking x-echoes-removed: no longer has x-echoes: "X-Request-Id"'],
    backward: [],
  },
  {
    rule: 'x-epoch-seconds',
    at: 'header',
    words: ['x-epoch-seconds: { at_most_ahead: 60 }', 'x-epoch-seconds: { at_most_ahead: 90 }'],
    forward: [
      'breaking x-epoch-seconds-increased: has x-epoch-seconds.at_most_ahead: 90 instead of 60',
    ],
    backward: [
      'safe x-epoch-seconds-decreased: has x-epoch-seconds.at_most_ahead: 60 instead of 90',
    ],
  },
  {
    rule: 'x-retry-seconds',
    at: 'delivery',
    words: ['x-retry-seconds: [5, 5, 60]', 'x-retry-seconds: [5, 9]'],
    forward: [
      'breaking x-retry-seconds-increased: has x-retry-seconds.1: 9 instead of 5',
      'breaking x-retry-seconds-removed: no longer has x-retry-seconds.2: 60',
    ],
    backward: ['breaking x-retry-seconds-decreased: has x-retry-seconds.1: 5 instead of 9'],
  },
  {
    rule: 'x-import',
    at: 'operation',
    words: ['x-import: { refused: refused }', 'x-import: { refused: failed }'],
    forward: ['breaking x-import-changed: has x-import.refused: "failed" instead of "refused"'],
    backward: ['breaking x-import-changed: has x-import.refused: "refused" instead of "failed"'],
  },
  {
    rule: 'x-batch',
    at: 'operation',
    words: ['x-batch: { create: createNote, max_body_bytes: 20 }', 'x-own: 1'],
    forward: [
      'breaking x-batch-removed: no longer has x-batch: {"create":"createNote","max_body_bytes":20}',
    ],
    backward: [],
  },
  {
    rule: 'x-batch.max_body_bytes',
    at: 'operation',
    words: ['x-batch: { max_body_bytes: 20 }', 'x-batch: { max_body_bytes: 10 }'],
    forward: ['breaking x-batch-decreased: has x-batch.max_body_bytes: 10 instead of 20'],
    backward: ['safe x-batch-increased: has x-batch.max_body_bytes: 20 instead of 10'],
  },
  {
    rule: 'x-timeout-seconds',
    at: 'delivery',
    words: ['x-timeout-seconds: 15', 'x-timeout-seconds: 10'],
    forward: ['breaking x-timeout-seconds-decreased: has x-timeout-seconds: 10 instead of 15'],
    backward: ['safe x-timeout-seconds-increased: has x-timeout-seconds: 15 instead of 10'],
  },
  {
    rule: 'x-parameters',
    at: 'header',
    words: [
      'x-parameters: { r: { equals: A }, t: { equals: 1 } }',
      'x-parameters: { t: { equals: 2 } }',
    ],
    forward: [
      'breaking x-parameters-removed: no longer has x-parameters.r: {"equals":"A"}',
      'breaking x-parameters-increased: has x-parameters.t.equals: 2 instead of 1',
    ],
    backward: ['breaking x-parameters-decreased: has x-parameters.t.equals: 1 instead of 2'],
  },
]
