/** What all lists have in common: pages, orders and filters, over records with ties and with fields that are null. */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type OperationId, operations } from '../../generated/operations.ts'
import { openDatabase } from '../../records/database/open.ts'
import {
  type Answer,
  type Client,
  operationIds,
  startApp,
  type TestAccount,
  type TestApp,
} from '../helpers.ts'
import { type Body, made, newJob, newParticipant, newPayment, newTask, UNKNOWN_ID } from './made.ts'

const START = Date.parse('2026-03-02T09:00:00.000Z')
const MINUTE = 60_000
const at = (minute: number): string => new Date(START + minute * MINUTE).toISOString()

let clock = START
let app: TestApp
let account: TestAccount
let client: Client
const all: Record<string, Body[]> = {}
/** A participant and a job of the account that was seeded last, for the filters that take an id. */
const ids: Record<'ada' | 'interpreter', string> = { ada: '', interpreter: '' }

const listIds = operationIds.filter((id) => /^list(?!Exports|EventTypes)/.test(id))
const pathOf = (id: OperationId): string => operations[id].path.replace('/public/v1', '')
const list = (id: OperationId, query: string): Promise<Answer> =>
  client.get(`${pathOf(id)}?${query}`)
const idsOf = (answer: Answer): string[] =>
  answer.body.data.map((record: { id: string }) => record.id)

beforeAll(async () => {
  app = await startApp({ now: () => new Date(clock) })
  account = await app.newAccount()
  client = app.as(account)
  // What others have matches whatever is asked for here.
  await seed(app.as(await app.newAccount()))
  await seed(client)
  for (const id of listIds) all[id] = (await list(id, 'page[size]=100')).body.data
})
afterAll(() => app[Symbol.asyncDispose]())

/** Two records a minute, so that times have ties too. */
async function seed(client: Client): Promise<void> {
  const minute = (value: number): void => {
    clock = START + Math.floor(value) * MINUTE
  }
  const names = [
    'Ada Lovelace',
    'zoë',
    'Ángel',
    '～tilde',
    '𝔄da',
    'Ada Lovelace',
    'ada b.',
    '100%_\\',
  ]
  const participants: Body[] = []
  for (const [i, full_name] of names.entries()) {
    minute(i / 2)
    const email = i % 3 === 2 ? null : `Person${i % 2 ? 'B' : 'a'}${i}@Example.com`
    const tags = [['vip', 'Vip'], ['vip'], []][i % 3]
    participants.push(
      await newParticipant(client, {
        full_name,
        email,
        tags,
        external_id: i % 2 ? null : `crm-${i}`,
      }),
    )
  }
  const [ada, zoe] = participants
  const people = participants.slice(0, 4)
  const jobs: Body[] = []
  const questions = [
    { key: 'french', label: 'French?', requirement: 'must_have', expected: true },
    { key: 'years', label: 'Years?', requirement: 'nice_to_have', expected: 5 },
  ]
  for (const [i, title] of ['Interpreter', 'Driver', 'Interpreter', 'cook', 'Ärztin'].entries()) {
    minute(i / 2)
    const status = i === 3 ? 'draft' : 'open'
    jobs.push(
      await newJob(client, {
        title,
        status,
        description: i === 1 ? 'For INTERPRETERS.' : '',
        screening_questions: i ? questions : [],
      }),
    )
  }
  Object.assign(ids, { ada: ada.id, interpreter: jobs[0].id })

  const applications: Body[] = []
  for (const [i, { id: participant_id }] of people.entries()) {
    for (const { id: job_id } of jobs.slice(0, 2)) {
      minute(applications.length / 3)
      const answers = [
        { french: true, years: 5 },
        { french: true },
        { years: 5 },
        { french: true, years: '5' },
      ][i]
      applications.push(
        await made(client.post('/job-applications', { job_id, participant_id, answers })),
      )
    }
  }
  const tasks: Body[] = []
  for (const [i, title] of [
    'Write',
    'write',
    'Call',
    'Write',
    'Übersetzen',
    'Call',
    'Pay',
  ].entries()) {
    minute(i / 2)
    const due_at = i % 3 === 0 ? null : at(10 - Math.floor(i / 3))
    tasks.push(await newTask(client, { title, due_at, participant_id: i % 2 ? ada.id : null }))
  }
  const payments: Body[] = []
  for (const [i, amount_minor] of [500, 70, 500, 9000, 999999999999, 70].entries()) {
    minute(i / 2)
    const currency = ['EUR', 'USD', 'JPY'][i % 3]
    payments.push(
      await newPayment(client, { participant_id: i % 2 ? ada.id : zoe.id, amount_minor, currency }),
    )
  }

  minute(20)
  await made(client.patch(`/participants/${ada.id}`, { status: 'inactive' }))
  await made(client.patch(`/participants/${participants[3].id}`, { status: 'archived' }))
  await made(client.patch(`/tasks/${tasks[1].id}`, { status: 'completed' }))
  await made(client.patch(`/jobs/${jobs[1].id}`, { status: 'closed' }))
  await made(client.patch(`/job-applications/${applications[0].id}`, { status: 'shortlisted' }))
  for (const i of [0, 3])
    await made(client.patch(`/payments/${payments[i].id}`, { status: 'paid' }))
  minute(21)
  await made(client.patch(`/participants/${participants[6].id}`, { phone: '1' }))
  await made(client.patch(`/tasks/${tasks[2].id}`, { status: 'cancelled' }))
  await made(client.patch(`/job-applications/${applications[3].id}`, { status: 'withdrawn' }))
  await made(client.patch(`/payments/${payments[1].id}`, { status: 'paid' }))
}

/** Text by code point, which is not the order of JavaScript's own comparison. */
const compare = (a: string | number, b: string | number): number =>
  typeof a === 'number' ? a - Number(b) : Buffer.compare(Buffer.from(a), Buffer.from(String(b)))

function sorted(records: Body[], sorts: string[]): string[] {
  const order = (a: Body, b: Body): number => {
    for (const sort of sorts) {
      const field = sort.replace('-', '')
      const [left, right] = [a[field], b[field]]
      if (left === right) continue
      if (left === null || right === null) return left === null ? 1 : -1
      return compare(left, right) * (sort.startsWith('-') ? -1 : 1)
    }
    return compare(a.id, b.id) * (sorts.at(-1)?.startsWith('-') ? -1 : 1)
  }
  return records.toSorted(order).map(({ id }) => id)
}

describe.each(listIds)('%s', (id) => {
  const directions = operations[id].sorts.flatMap((sort) => [sort, `-${sort}`])

  test('no sort → in the order of creation', async () => {
    const answer = await list(id, 'page[size]=100')
    expect(idsOf(answer)).toEqual(sorted(all[id] ?? [], []))
    expect(answer.body.meta.allowed_sorts).toEqual(operations[id].sorts)
  })

  test.each(directions)('sort=%s → by code point, what is null last, ties by id', async (sort) => {
    const answer = await list(id, `page[size]=100&sort=${sort}`)
    expect(idsOf(answer)).toEqual(sorted(all[id] ?? [], [sort]))
  })

  test('several sorts → the first decides, then the next', async () => {
    const [first = '', second] = operations[id].sorts
    for (const sorts of [
      [`-${first}`, second ?? []].flat(),
      [first, second ? `-${second}` : []].flat(),
    ])
      expect(idsOf(await list(id, `page[size]=100&sort=${sorts}`))).toEqual(
        sorted(all[id] ?? [], sorts),
      )
  })

  test('a field in both directions → 422 on sort', async () => {
    const [sort] = operations[id].sorts
    const { status, body } = await list(id, `sort=${sort},-${sort}`)
    expect([status, Object.keys(body.errors)]).toEqual([422, ['sort']])
  })

  test.each(['', ...directions])(
    'pages of 2, sort=%s → every record once, in the same order',
    async (sort) => {
      const query = sort && `&sort=${sort}`
      const walked: string[] = []
      const total = all[id]?.length ?? 0
      for (let page = 1; ; page++) {
        const answer = await list(id, `page[size]=2&page[number]=${page}${query}`)
        expect(answer.body.meta).toMatchObject({
          current_page: page,
          last_page: Math.ceil(total / 2),
          per_page: 2,
          total,
        })
        walked.push(...idsOf(answer))
        if (page === answer.body.meta.last_page) break
      }
      expect(walked).toEqual(sorted(all[id] ?? [], sort ? [sort] : []))
    },
  )

  test('a page past the last → 200 without records', async () => {
    const { status, body } = await list(id, 'page[number]=10000000&page[size]=100')
    expect([status, body.data, body.meta.current_page, body.meta.last_page]).toEqual([
      200,
      [],
      10_000_000,
      1,
    ])
  })

  test('an account without records → last_page 1, whatever others have', async () => {
    const { body } = await app.as(await app.newAccount()).get(pathOf(id))
    const meta = {
      current_page: 1,
      last_page: 1,
      per_page: 25,
      total: 0,
      allowed_sorts: operations[id].sorts,
    }
    expect(body).toEqual({ data: [], meta })
  })

  test.each(['', ...directions])('sort=%s → read in order from an index', async (sort) => {
    const [page] = (await statementsOf(id, sort && `sort=${sort}`)).filter(({ sql }) =>
      /order by/.test(sql),
    )
    const plan = await planOf(page?.sql ?? '', page?.bindings ?? [])
    expect(plan).toMatch(/index/i)
    expect(plan).not.toMatch(/temp b-tree|seq scan|\bsort\b/i)
  })
})

interface Statement {
  sql: string
  bindings: unknown[]
}

/** What a list asks the database: to count, and to read the page. */
async function statementsOf(id: OperationId, query: string): Promise<Statement[]> {
  const statements: Statement[] = []
  const note = (statement: Statement): void => void statements.push(statement)
  app.db.read.on('query', note)
  await list(id, query)
  app.db.read.off('query', note)
  return statements.filter(({ sql }) => /count\(|order by/.test(sql))
}

/** How the database would go about it if the tables were large. */
async function planOf(sql: string, bindings: unknown[]): Promise<string> {
  const text = sql.replaceAll(/\$\d+/g, '?')
  // Not over the server's connections: on SQLite, one that has explained goes on seeing the records of that moment.
  const db = openDatabase(app.config.database)
  try {
    if (inject('database') === 'sqlite') {
      const steps = (await db.read.raw(`explain query plan ${text}`, bindings as string[])) as {
        detail: string
      }[]
      return steps.map(({ detail }) => detail).join('\n')
    }
    return await db.write.transaction(async (trx) => {
      for (const setting of [
        'enable_seqscan',
        'enable_sort',
        'enable_incremental_sort',
        'enable_bitmapscan',
      ])
        await trx.raw(`set local ${setting} = off`)
      const { rows } = await trx.raw(`explain ${text}`, bindings as string[])
      return rows.map((row: Record<string, string>) => row['QUERY PLAN']).join('\n')
    })
  } finally {
    await db.close()
  }
}

type Matches = (record: Body) => boolean
const filters: Partial<Record<OperationId, Record<string, [string | (() => string), Matches][]>>> =
  {
    listParticipants: {
      status: [
        ['inactive', ({ status }) => status === 'inactive'],
        ['inactive,archived', ({ status }) => status !== 'active'],
      ],
      email: [
        ['PERSONa0@example.COM', ({ email }) => email === 'Persona0@Example.com'],
        ['persona', () => false],
      ],
      external_id: [
        ['crm-4', ({ external_id }) => external_id === 'crm-4'],
        ['CRM-4', () => false],
      ],
      tag: [
        ['vip', ({ tags }) => tags.includes('vip')],
        ['Vip', ({ tags }) => tags.includes('Vip')],
        ['vi', () => false],
      ],
      created_after: [
        [at(1), ({ created_at }) => created_at > at(1)],
        ['2026-03-02T10:01:00.000000001%2B01:00', ({ created_at }) => created_at > at(1)],
      ],
      created_before: [[at(1), ({ created_at }) => created_at < at(1)]],
      search: [
        ['ADA', ({ full_name }) => /ada/i.test(full_name)],
        ['ÁNGEL', ({ full_name }) => full_name === 'Ángel'],
        ['personb', ({ email }) => /personb/i.test(email ?? '')],
        ['a l', ({ full_name }) => full_name === 'Ada Lovelace'],
        ['%25', ({ full_name }) => full_name.includes('%')],
        ['_', ({ full_name }) => full_name.includes('_')],
        ['\\', ({ full_name }) => full_name.includes('\\')],
      ],
    },
    listTasks: {
      status: [
        ['completed', ({ status }) => status === 'completed'],
        ['completed,cancelled', ({ status }) => status !== 'open'],
      ],
      participant_id: [
        [() => ids.ada, ({ participant_id }) => participant_id === ids.ada],
        [() => ids.ada.toUpperCase(), ({ participant_id }) => participant_id === ids.ada],
        [() => `urn:uuid:${ids.ada}`, ({ participant_id }) => participant_id === ids.ada],
        [UNKNOWN_ID, () => false],
      ],
      due_after: [[at(9), ({ due_at }) => due_at !== null && due_at > at(9)]],
      due_before: [[at(10), ({ due_at }) => due_at !== null && due_at < at(10)]],
    },
    listJobs: {
      status: [
        ['closed', ({ status }) => status === 'closed'],
        ['draft,closed', ({ status }) => status !== 'open'],
      ],
      search: [
        ['interPRETER', ({ title, description }) => /interpreter/i.test(title + description)],
        ['ärztin', ({ title }) => title === 'Ärztin'],
      ],
    },
    listJobApplications: {
      status: [
        ['shortlisted', ({ status }) => status === 'shortlisted'],
        ['shortlisted,withdrawn', ({ status }) => status !== 'submitted'],
      ],
      job_id: [[() => ids.interpreter, ({ job_id }) => job_id === ids.interpreter]],
      participant_id: [[() => ids.ada, ({ participant_id }) => participant_id === ids.ada]],
      screening_outcome: [
        ['meets_all', ({ screening_outcome }) => screening_outcome === 'meets_all'],
        [
          'missing_must_have,missing_nice_to_have',
          ({ screening_outcome }) => /missing/.test(screening_outcome),
        ],
      ],
    },
    listPayments: {
      status: [
        ['paid', ({ status }) => status === 'paid'],
        ['cancelled', () => false],
      ],
      participant_id: [[() => ids.ada, ({ participant_id }) => participant_id === ids.ada]],
      currency: [
        ['JPY', ({ currency }) => currency === 'JPY'],
        ['JPY,EUR', ({ currency }) => currency !== 'USD'],
      ],
    },
    listEvents: {
      event_type: [
        ['payment.paid', ({ event_type }) => event_type === 'payment.paid'],
        [
          'task.completed,job.created',
          ({ event_type }) => ['task.completed', 'job.created'].includes(event_type),
        ],
      ],
      resource_id: [
        [() => ids.ada, ({ resource }) => resource.id === ids.ada],
        [() => ids.ada.toUpperCase(), ({ resource }) => resource.id === ids.ada],
      ],
      created_after: [[at(20), ({ created_at }) => created_at > at(20)]],
      created_before: [[at(1), ({ created_at }) => created_at < at(1)]],
    },
  }

describe.each(listIds)('%s: the filters', (id) => {
  const cases = Object.entries(filters[id] ?? {})

  test('every one of the contract has a case here', () =>
    expect(cases.map(([name]) => name).sort()).toEqual(Object.keys(operations[id].filters).sort()))

  test.each(cases)(
    'filter[%s] → the records that match, counted and in order',
    async (name, rows) => {
      for (const [value, matches] of rows) {
        const answer = await list(
          id,
          `page[size]=100&filter[${name}]=${typeof value === 'string' ? value : value()}`,
        )
        const expected = (all[id] ?? []).filter(matches).map((record) => record.id)
        expect({ value, ids: idsOf(answer), total: answer.body.meta.total }).toEqual({
          value,
          ids: expected,
          total: expected.length,
        })
      }
      // Or the case would show nothing.
      const counts = rows.map(([, matches]) => all[id]?.filter(matches).length ?? 0)
      expect(counts.some((count) => count > 0 && count < (all[id]?.length ?? 0))).toBe(true)
    },
  )

  const firstOf = (rows: (typeof cases)[number][1]): string => {
    const value = rows[0]?.[0] ?? ''
    return typeof value === 'string' ? value : value()
  }

  test.each(cases)(
    'filter[%s] with each sort, in pages of 2 → every record once, in the same order',
    async (name, rows) => {
      const query = `filter[${name}]=${firstOf(rows)}`
      const matching = (all[id] ?? []).filter(rows[0]?.[1] ?? (() => false))
      for (const sort of operations[id].sorts.map((field, index) =>
        index % 2 ? field : `-${field}`,
      )) {
        const walked: string[] = []
        for (let page = 1, last = 1; page <= last; page++) {
          const answer = await list(id, `${query}&sort=${sort}&page[size]=2&page[number]=${page}`)
          last = answer.body.meta.last_page
          expect(answer.body.meta.total).toBe(matching.length)
          walked.push(...idsOf(answer))
        }
        expect({ sort, walked }).toEqual({ sort, walked: sorted(matching, [sort]) })
      }
    },
  )

  /** PostgreSQL decides by what the tables hold, and here they hold next to nothing. */
  const isDecided = inject('database') === 'sqlite'
  test.runIf(isDecided).each(cases.filter(([name]) => name !== 'search'))(
    'filter[%s] → found by an index',
    async (name, rows) => {
      const column = name === 'email' ? 'email_key' : name.replace(/_(after|before)$/, '_at')
      const statements = await statementsOf(id, `filter[${name}]=${firstOf(rows)}`)
      expect(statements).toHaveLength(2)
      for (const { sql, bindings } of statements)
        expect(await planOf(sql, bindings)).toMatch(
          new RegExp(`INDEX \\w+ \\((.* AND )?${column}[=<>]`),
        )
    },
  )
})

describe('listParticipants, listJobs: the search', () => {
  const found: { search: string; text: string }[] = [
    { search: 'STRASSE', text: 'Große Straße' },
    { search: 'straße', text: 'GROSSE STRASSE' },
    { search: 'ΟΔΥΣ', text: 'Οδυσσεας' },
    { search: 'ΕΥΣ', text: 'οδυσσευς ο πολυτροπος' },
    { search: 'caf\u00e9', text: 'Cafe\u0301' },
    { search: 'CAFE\u0301', text: 'café' },
    { search: 'дом', text: 'ДОМ' },
    { search: '日本', text: '日本語' },
    { search: "o'br", text: "Flann O'Brien" },
    { search: '𝔄', text: '𝔄da' },
  ]
  test.each(found)('$search → finds $text', async ({ search, text }) => {
    const own = app.as(await app.newAccount())
    await newParticipant(own, { full_name: text })
    await newParticipant(own, { full_name: 'Somebody else' })
    await newJob(own, { title: text })
    await newJob(own, { title: 'Something else', description: text })
    const total = async (path: string): Promise<number> =>
      (await own.get(`${path}?filter[search]=${encodeURIComponent(search)}`)).body.meta.total
    expect([await total('/participants'), await total('/jobs')]).toEqual([1, 2])
  })
})

test('listParticipants: several filters and a sort → all must match', async () => {
  const answer = await list(
    'listParticipants',
    'filter[status]=active,archived&filter[tag]=vip&filter[search]=a&sort=-email',
  )
  const expected = (all.listParticipants ?? []).filter(
    ({ status, tags, full_name, email }) =>
      status !== 'inactive' && tags.includes('vip') && /a/i.test(`${full_name}${email}`),
  )
  expect(idsOf(answer)).toEqual(sorted(expected, ['-email']))
  expect(answer.body.meta.total).toBe(expected.length)
})
