/** Changes of words in schemas, and what `diff` says about each. */
import type { WordCase } from './diff-word-cases.ts'

const states = (open: string, more = ''): string =>
  `x-record: { states: { status: { open: ${open}${more} } } }`
const computed = (from: string, rows: string): string =>
  `x-record: { computed: { sum: { from: ${from}, table: [${rows}] } } }`
const when = (word: string, condition: string): string =>
  `x-record: { ${word}: { paid_at: ${condition} } }`

export const SCHEMA_WORD_CASES: WordCase[] = [
  ...[
    'x-currency',
    'x-names-fields',
    'x-refers-to',
    'x-when-deleted',
    'x-equals',
    'x-time-of',
    'x-trace-of',
  ].map(
    (rule): WordCase => ({
      rule,
      at: 'schema',
      words: [`${rule}: a`, `${rule}: b`],
      forward: [`breaking ${rule}-changed: has ${rule}: "b" instead of "a"`],
      backward: [`breaking ${rule}-changed: has ${rule}: "a" instead of "b"`],
    }),
  ),
  {
    rule: 'x-record',
    at: 'schema',
    words: ['x-record: { created: created_at }', 'x-record: { updated: updated_at }'],
    forward: ['breaking x-record-removed: no longer has x-record.created: "created_at"'],
    backward: ['breaking x-record-removed: no longer has x-record.updated: "updated_at"'],
  },
  {
    rule: 'x-record.computed',
    at: 'schema',
    words: ['x-record: {}', computed('[a]', '[1, x]')],
    forward: [],
    backward: [
      'breaking x-record-removed: no longer has x-record.computed.sum: {"from":["a"],"table":[[1,"x"]]}',
    ],
  },
  {
    rule: 'x-record.computed.*',
    at: 'schema',
    words: [computed('[a]', '[1, x]'), computed('[a]', '[1, x], [2, y]')],
    forward: [],
    backward: ['breaking x-record-removed: no longer has x-record.computed.sum.table: [2,"y"]'],
  },
  {
    rule: 'x-record.computed.*.from',
    at: 'schema',
    words: [computed('[a, b]', '[1, 2, x]'), computed('[b, a]', '[1, 2, x]')],
    forward: [
      'breaking x-record-changed: has x-record.computed.sum.from.0: "b" instead of "a"',
      'breaking x-record-changed: has x-record.computed.sum.from.1: "a" instead of "b"',
    ],
    backward: [
      'breaking x-record-changed: has x-record.computed.sum.from.0: "a" instead of "b"',
      'breaking x-record-changed: has x-record.computed.sum.from.1: "b" instead of "a"',
    ],
  },
  {
    rule: 'x-record.finished_when',
    at: 'schema',
    words: ['x-record: { finished_when: { status: [done] } }', 'x-record: {}'],
    forward: [
      'breaking x-record-removed: no longer has x-record.finished_when: {"status":["done"]}',
    ],
    backward: [],
  },
  {
    rule: 'x-record.finished_when.*',
    at: 'schema',
    words: [
      'x-record: { finished_when: { status: [done] } }',
      'x-record: { finished_when: { status: [done, failed] } }',
    ],
    forward: ['risky x-record-added: has x-record.finished_when.status: "failed"'],
    backward: ['breaking x-record-removed: no longer has x-record.finished_when.status: "failed"'],
  },
  ...['fixed_when', 'fixed_when.*'].map(
    (path): WordCase => ({
      rule: `x-record.${path}`,
      at: 'schema',
      words: [
        path.endsWith('*') ? 'x-record: { fixed_when: {} }' : 'x-record: {}',
        when('fixed_when', '{ status: [paid] }'),
      ],
      forward: ['breaking x-record-added: has x-record.fixed_when.paid_at: {"status":["paid"]}'],
      backward: [
        'risky x-record-removed: no longer has x-record.fixed_when.paid_at: {"status":["paid"]}',
      ],
    }),
  ),
  ...['include', 'include.*'].map(
    (path): WordCase => ({
      rule: `x-record.${path}`,
      at: 'schema',
      words: [
        path.endsWith('*') ? 'x-record: { include: {} }' : 'x-record: {}',
        'x-record: { include: { job: job_id } }',
      ],
      forward: [],
      backward: ['breaking x-record-removed: no longer has x-record.include.job: "job_id"'],
    }),
  ),
  ...['set_when', 'set_when.*'].map(
    (path): WordCase => ({
      rule: `x-record.${path}`,
      at: 'schema',
      words: [
        path.endsWith('*') ? 'x-record: { set_when: {} }' : 'x-record: {}',
        when('set_when', '{ status: [paid] }'),
      ],
      forward: [],
      backward: [
        'breaking x-record-removed: no longer has x-record.set_when.paid_at: {"status":["paid"]}',
      ],
    }),
  ),
  ...['fixed_when', 'set_when'].map(
    (word): WordCase => ({
      rule: `x-record.${word}.*.*`,
      at: 'schema',
      words: [when(word, '{ status: [paid] }'), when(word, '{ status: [paid, cancelled] }')],
      forward: [`breaking x-record-added: has x-record.${word}.paid_at.status: "cancelled"`],
      backward: [
        `breaking x-record-removed: no longer has x-record.${word}.paid_at.status: "cancelled"`,
      ],
    }),
  ),
  ...['states', 'states.*'].map(
    (path): WordCase => ({
      rule: `x-record.${path}`,
      at: 'schema',
      words: [path.endsWith('*') ? 'x-record: { states: {} }' : 'x-record: {}', states('[done]')],
      forward: ['breaking x-record-added: has x-record.states.status: {"open":["done"]}'],
      backward: ['risky x-record-removed: no longer has x-record.states.status: {"open":["done"]}'],
    }),
  ),
  {
    rule: 'x-record.states.*.*',
    at: 'schema',
    words: [states('[done]'), states('[done, lost]', ', lost: []')],
    forward: [
      'risky x-record-added: has x-record.states.status.open: "lost"',
      'risky x-record-added: has x-record.states.status.lost: []',
    ],
    backward: [
      'breaking x-record-removed: no longer has x-record.states.status.open: "lost"',
      'breaking x-record-removed: no longer has x-record.states.status.lost: []',
    ],
  },
  {
    rule: 'x-record.unique',
    at: 'schema',
    words: ['x-record: {}', 'x-record: { unique: [a, b] }'],
    forward: ['breaking x-record-added: has x-record.unique: ["a","b"]'],
    backward: ['risky x-record-removed: no longer has x-record.unique: ["a","b"]'],
  },
  {
    rule: 'x-record.unique.*',
    at: 'schema',
    words: ['x-record: { unique: [a] }', 'x-record: { unique: [a, b] }'],
    forward: ['breaking x-record-added: has x-record.unique: "b"'],
    backward: ['breaking x-record-removed: no longer has x-record.unique: "b"'],
  },
  {
    rule: 'x-refers-with',
    at: 'schema',
    words: ['x-refers-with: { status: open }', 'x-refers-with: { status: open, kind: new }'],
    forward: ['breaking x-refers-with-added: has x-refers-with.kind: "new"'],
    backward: ['safe x-refers-with-removed: no longer has x-refers-with.kind: "new"'],
  },
  {
    rule: 'x-returned-by',
    at: 'schema',
    words: ['x-returned-by: [getNote]', 'x-own: 1'],
    forward: ['safe x-returned-by-removed: no longer has x-returned-by: ["getNote"]'],
    backward: [],
  },
  {
    rule: 'x-shown-once',
    at: 'schema',
    words: ['x-shown-once: true', 'x-own: 1'],
    forward: ['safe x-shown-once-removed: no longer has x-shown-once: true'],
    backward: [],
  },
  {
    rule: 'x-returned-by.*',
    at: 'schema',
    words: ['x-returned-by: [getNote, getOld]', 'x-returned-by: [getNote]'],
    forward: ['breaking x-returned-by-removed: no longer has x-returned-by: "getOld"'],
    backward: [],
  },
]
