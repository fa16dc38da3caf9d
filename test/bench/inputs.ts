/** How long the worst inputs of the operations and forms, and the largest pages, block the event
 *  loop. */
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { startSession } from '../../auth/session.ts'
import type { WriteScope } from '../../records/database/scope.ts'
import { insertJobApplication } from '../../records/job-applications.ts'
import { insertJob } from '../../records/jobs.ts'
import { insertParticipant } from '../../records/participants.ts'
import { insertPayment } from '../../records/payments.ts'
import { insertTask } from '../../records/tasks.ts'
import { startChild } from './child.ts'
import { figure, median, type Result } from './result.ts'
import type { Server } from './server.ts'
import { type Bench, newAccount, withRecords } from './set-up.ts'

/** The most time of one turn of the event loop, in which other requests wait. */
const MAX_TURN_MS = 50
const ROUNDS = 5
const RECORDS = 100
const MIB = 1024 ** 2

interface Input {
  what: string
  method?: 'GET' | 'POST' | 'PATCH'
  path: string
  body?: string
  headers?: Record<string, string>
  /** The request creates an export. The measurement waits until its file is written. */
  isExport?: true
}

export async function inputs(bench: Bench): Promise<Result[]> {
  const environment = await bench.newEnvironment()
  const records = await withRecords(environment, async (trx) => {
    const { scope, token } = await newAccount(trx)
    const { userId } = await scope.rows('users').first('id as userId')
    const device = { userId, ip: '127.0.0.1', userAgent: 'bench' }
    const { token: session } = await startSession(scope, device, new Date())
    const ids = await addLargestRecords(scope)
    return { accountId: scope.accountId, token, session, ...ids }
  })
  await using server = startChild<Server>('server.ts')
  const url = await server.call('start', 'service', environment, records.accountId)
  const dispatcher = new Agent()
  const send = newSender(url, { ...records, dispatcher, progress: bench.progress })
  const all = [
    ...createBodies(),
    ...updateBodies(records),
    ...queries(),
    ...pages(),
    ...forms(),
    ...exportRequests(),
  ]
  const results: Result[] = []
  for (const input of all) {
    bench.progress(input.what)
    const longestTurns: number[] = []
    // The first two rounds warm up.
    for (let round = -1; round <= (bench.quick ? 1 : ROUNDS); round++) {
      await server.call('watchTurns')
      await send(input)
      const longestMs = await server.call('longestTurnMs')
      if (round > 0) longestTurns.push(longestMs)
    }
    results.push(
      figure({ what: input.what, unit: 'ms', goal: { atMost: MAX_TURN_MS } }, median(longestTurns)),
    )
  }
  await dispatcher.close()
  return results
}

interface SenderOptions {
  /** An API key. */
  token: string
  /** The token of a session of the console. */
  session: string
  dispatcher: Agent
  progress(text: string): void
}

/** Returns a function that sends an input to the API or the console. It throws for a 5xx status. */
function newSender(
  url: string,
  { token, session, dispatcher, progress }: SenderOptions,
): (input: Input) => Promise<void> {
  const apiHeaders = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const consoleHeaders = {
    cookie: `muster-session=${session}`,
    origin: url,
    'sec-fetch-site': 'same-origin',
  }
  const waitForExport = async (id: string): Promise<void> => {
    const headers = { authorization: `Bearer ${token}` }
    for (let status = ''; status !== 'completed' && status !== 'failed'; await delay(50)) {
      const { body } = await request(`${url}/public/v1/exports/${id}`, { headers, dispatcher })
      status = ((await body.json()) as { status: string }).status
    }
  }
  return async ({ method = 'GET', path, body, headers, isExport }) => {
    const ownHeaders = path.startsWith('/console') ? consoleHeaders : apiHeaders
    const response = await request(url + path, {
      method,
      headers: { ...ownHeaders, ...headers },
      body,
      dispatcher,
    })
    const text = await response.body.text()
    if (response.statusCode >= 500) throw new Error(`${path} returned ${response.statusCode}`)
    progress(`${response.statusCode} ${text.length} bytes`)
    if (isExport) await waitForExport(JSON.parse(text).id)
  }
}

/** One byte, and six in JSON, where it is escaped. */
const ESCAPED = '\u0001'

/** A hundred records of each kind, each about as large as a record may be. */
async function addLargestRecords(
  scope: WriteScope,
): Promise<{ jobId: string; applicationId: string }> {
  const now = new Date()
  const ids = { jobId: '', applicationId: '' }
  for (let number = 0; number < RECORDS; number++) {
    const participant = await insertParticipant(
      scope,
      {
        full_name: 'é'.repeat(200),
        status: 'active',
        external_id: `${number}`,
        tags: Array.from({ length: 50 }, (_, tag) => `${tag} ${ESCAPED.repeat(47)}`),
      },
      now,
    )
    await insertTask(
      scope,
      { title: 'Task', status: 'open', description: ESCAPED.repeat(6_700) },
      now,
    )
    const payment = {
      participant_id: participant.id,
      amount_minor: 1,
      currency: 'EUR' as const,
      note: ESCAPED.repeat(2_000),
    }
    await insertPayment(scope, payment, now)
    const job = await insertJob(
      scope,
      { title: 'Job', status: 'open', description: '', screening_questions: QUESTIONS },
      now,
    )
    const application = await insertJobApplication(
      scope,
      { job_id: job.id, participant_id: participant.id, answers: ANSWERS },
      now,
    )
    ids.jobId = job.id
    ids.applicationId = application.id
  }
  return ids
}

const QUESTIONS = Array.from({ length: 50 }, (_, index) => ({
  key: `question_${index}`,
  label: 'é'.repeat(300),
  requirement: 'must_have' as const,
  operator: 'equals' as const,
  expected: 'x',
}))
const ANSWERS = Object.fromEntries(
  Array.from({ length: 100 }, (_, index) => [`question_${index}`, '"'.repeat(195)]),
)

const JOBS = '/public/v1/jobs'
const PARTICIPANTS = '/public/v1/participants'
const TASKS = '/public/v1/tasks'
const json = (value: unknown): string => JSON.stringify(value)
const many = <T>(count: number, item: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => item(index))

function createBodies(): Input[] {
  const post = (what: string, path: string, body: string): Input => ({
    what,
    method: 'POST',
    path,
    body,
  })
  return [
    post('1 MiB of nested lists', PARTICIPANTS, '['.repeat(MIB - 2)),
    post('1 MiB of nested lists, closed', PARTICIPANTS, '['.repeat(MIB / 2) + ']'.repeat(MIB / 2)),
    post('1 MiB of empty objects', PARTICIPANTS, `[${'{},'.repeat(MIB / 3 - 2)}{}]`),
    post(
      '1 MiB of fields',
      PARTICIPANTS,
      json(Object.fromEntries(many(70_000, (i) => [`f${i}`, i]))),
    ),
    post(
      '9,900 unknown fields',
      PARTICIPANTS,
      json(Object.fromEntries(many(9_900, (i) => [`f${i}${'x'.repeat(90)}`, i]))),
    ),
    post(
      '9,900 equal tags',
      PARTICIPANTS,
      json({ full_name: 'A', tags: many(9_900, () => 'x'.repeat(90)) }),
    ),
    post(
      '9,900 different tags',
      PARTICIPANTS,
      json({ full_name: 'A', tags: many(9_900, (i) => `${'x'.repeat(85)}${i}`) }),
    ),
    post(
      '9,900 empty questions',
      JOBS,
      json({ title: 'J', screening_questions: many(9_900, () => ({})) }),
    ),
    post(
      '1,600 questions',
      JOBS,
      json({
        title: 'J',
        screening_questions: many(1_600, (i) => ({ ...QUESTIONS[0], key: `q${i}` })),
      }),
    ),
    post(
      'a question with 9,900 expected answers',
      JOBS,
      json({
        title: 'J',
        screening_questions: [
          { ...QUESTIONS[0], operator: 'one_of', expected: many(9_900, (i) => `${i}`) },
        ],
      }),
    ),
    ...[' ', '\t', '\u00a0', '\u0001', 'a', 'a@', '.', '-', '1', '👩'].map((character) =>
      post(
        `${json(character)} in all fields of a participant`,
        PARTICIPANTS,
        fullParticipant(character),
      ),
    ),
    post('1 MiB of "1" as a time', TASKS, json({ title: 'T', due_at: '1'.repeat(MIB - 100) })),
    post(
      'filters of an export',
      '/public/v1/exports',
      json({
        resource: 'participants',
        format: 'csv',
        filters: { status: many(250, () => 'a').join(','), search: '%'.repeat(500) },
      }),
    ),
  ]
}

function updateBodies({ jobId, applicationId }: { jobId: string; applicationId: string }): Input[] {
  const patch = (what: string, path: string, body: string, type = 'application/json'): Input => ({
    what,
    method: 'PATCH',
    path,
    body,
    headers: { 'content-type': type },
  })
  const application = `/public/v1/job-applications/${applicationId}`
  return [
    patch(
      'the largest job',
      `${JOBS}/${jobId}`,
      json({ screening_questions: QUESTIONS, description: ESCAPED.repeat(10) }),
    ),
    patch(
      '50 questions of 6 KB',
      `${JOBS}/${jobId}`,
      json({
        screening_questions: QUESTIONS.map((question) => ({
          ...question,
          label: ESCAPED.repeat(500),
          expected: 'é'.repeat(2_000),
        })),
      }),
    ),
    patch(
      'a merge patch of 9,900 answers',
      application,
      json({ answers: Object.fromEntries(many(9_900, (i) => [`a${i}`, 'x'.repeat(80)])) }),
      'application/merge-patch+json',
    ),
    patch(
      'a merge patch of 9,900 removals',
      application,
      json({ answers: Object.fromEntries(many(9_900, (i) => [`a${i}`, null])) }),
      'application/merge-patch+json',
    ),
  ]
}

/** Repeats the text in all fields, up to 1 MiB. */
function fullParticipant(text: string): string {
  const names = ['full_name', 'email', 'phone', 'external_id', 'status']
  const part = text.repeat(Math.floor((MIB * 0.99) / 6 / (Buffer.byteLength(json(text)) - 2)))
  const fields = Object.fromEntries(names.map((name) => [name, part]))
  return json({ ...fields, tags: [part] })
}

const QUERY_BYTES = 8_000

function queries(): Input[] {
  const get = (what: string, query: string, headers?: Record<string, string>): Input => ({
    what,
    path: `${PARTICIPANTS}?${query}`,
    headers,
  })
  const fill = (text: string): string => text.repeat(Math.floor(QUERY_BYTES / text.length))
  return [
    get('a search of 8 KB', `filter[search]=${fill('x')}`),
    get('a search of 200 %', `filter[search]=${'%25'.repeat(200)}`),
    get('a search of 200 _', `filter[search]=${'_'.repeat(200)}`),
    get('a list filter of 4,000 values', `filter[status]=${fill('a,')}`),
    get('a filter of 8,000 commas', `filter[tag]=${fill(',')}`),
    get('470 repeated filters', fill('filter[status]=a&')),
    get('420 repeated filters with brackets', fill('filter[status][]=a&')),
    get('1,100 unknown parameters', many(1_100, (i) => `p${i}=1`).join('&')),
    get('8,000 empty parameters', fill('&')),
    get('2,700 encoded brackets', fill('%5B')),
    get('a sort of 4,000 fields, half of them empty', `sort=${fill('-a,,')}`),
    get('a time of 8 KB', `filter[created_after]=${fill('2026-01-01T00:00:00.')}`),
    get('a long If-None-Match', '', { 'if-none-match': `"${'x",W/"'.repeat(150)}` }),
    get('a long traceparent', '', { traceparent: '0-'.repeat(3_000) }),
    get('a long Authorization', '', { authorization: `Bearer ${' mst_'.repeat(1_500)}` }),
    get('a long Accept', '', { accept: 'a/b;q=0.1,'.repeat(800) }),
  ]
}

function pages(): Input[] {
  const lists = ['participants', 'tasks', 'jobs', 'job-applications', 'payments', 'events']
  return [
    ...lists.map((list) => ({
      what: `100 of the largest ${list}`,
      path: `/public/v1/${list}?page[size]=100`,
    })),
    { what: 'a search in the largest jobs', path: `${JOBS}?page[size]=100&filter[search]=o` },
    ...['participants', 'jobs', 'job-applications'].map((list) => ({
      what: `console: the largest ${list}`,
      path: `/console/records/${list}`,
    })),
    { what: 'console: requests with large bodies', path: '/console/requests' },
  ]
}

function forms(): Input[] {
  const form = (what: string, path: string, fields: [string, string][]): Input => ({
    what,
    method: 'POST',
    path: `/console${path}`,
    body: new URLSearchParams(fields).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  })
  const groups = (count: number, bytes: number): [string, string][] => [
    ['title', 'J'],
    ...many(count, (index): [string, string][] => [
      [`screening_questions.${index}.key`, `question_${index}`],
      [`screening_questions.${index}.label`, 'x'.repeat(bytes)],
      [`screening_questions.${index}.requirement`, 'must_have'],
      [`screening_questions.${index}.expected`, 'x'.repeat(bytes)],
    ]).flat(),
  ]
  return [
    form(
      'a form of 4,900 fields',
      '/records/jobs/new',
      many(4_900, (i) => [`f${i}`, 'x'.repeat(150)]),
    ),
    form(
      'a form of 1,900 fields',
      '/records/jobs/new',
      many(1_900, (i) => [`f${i}`, 'x'.repeat(500)]),
    ),
    form('a form of 50 large groups', '/records/jobs/new', groups(50, 10_000)),
    form('a form of 200 large groups', '/records/jobs/new', groups(200, 2_400)),
    form('a form of 450 groups', '/records/jobs/new', groups(450, 10)),
    form('a form with a large field', '/records/tasks/new', [['title', ' '.repeat(MIB - 100)]]),
  ]
}

/** Exports of the largest records. */
function exportRequests(): Input[] {
  return ['participants', 'tasks', 'jobs', 'job_applications', 'payments'].flatMap((resource) =>
    ['csv', 'json'].map((format) => ({
      what: `${format} of the largest ${resource}`,
      method: 'POST' as const,
      path: '/public/v1/exports',
      body: json({ resource, format }),
      isExport: true as const,
    })),
  )
}
