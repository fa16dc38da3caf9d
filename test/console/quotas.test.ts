/** Pages of the console say which quota of the account refused a change. */
import { expect, it } from 'vitest'
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { setQuota } from '../../records/quotas.ts'
import { updateRateLimit } from '../../records/users.ts'
import { newTask } from '../handlers/new-records.ts'
import { sharedApp } from '../helpers.ts'
import { mainForm, mainText, submitForm, withValues } from './forms.ts'
import { newOwner } from './record-forms.ts'
import { newAccountOwner, newConsoleUser, visitor } from './visitors.ts'

const app = sharedApp({
  environment: { EVENTS_PER_ACCOUNT_AND_DAY: '2', EXPORTS_UNFINISHED_PER_ACCOUNT: '1' },
})

/** The Owner of an account that has caused all events of its quota, and the ID of one of its
 *  tasks. */
async function newAccountAtQuota() {
  const { client, visits } = await newOwner(app)
  await newTask(client)
  return { visits, taskId: (await newTask(client)).id }
}

const NO_MORE_EVENTS = 'Your account may cause 2 events a day.'

it.each(['new', 'edit'])(
  'the form %s above the quota of events: 429, with the reason and the input',
  async (form) => {
    const { visits, taskId } = await newAccountAtQuota()
    const path = form === 'new' ? '/records/tasks/new' : `/records/tasks/${taskId}/edit`
    const refused = await submitForm(visits, path, { title: 'Call back' })
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(mainText(refused.text)).toContain(NO_MORE_EVENTS)
    expect(withValues(mainForm(refused.text), {})).toMatchObject({ title: 'Call back' })
  },
)

it('a deletion above the quota of events: 429 with the reason', async () => {
  const { visits, taskId } = await newAccountAtQuota()
  const refused = await submitForm(visits, `/records/tasks/${taskId}/delete`, {})
  expect(refused.status).toBe(429)
  expect(mainText(refused.text)).toContain(NO_MORE_EVENTS)
})

it('an export above the quota of unfinished exports: 429 with the reason', async () => {
  const { visits } = await newOwner(app)
  const create = () =>
    submitForm(visits, '/records/exports/new', { resource: 'tasks', format: 'csv' })
  expect((await create()).status).toBe(303)
  const refused = await create()
  expect(refused.status).toBe(429)
  expect(mainText(refused.text)).toContain(
    'Your account has 1 unfinished export, which is the limit.',
  )
})

it('shows the rate limits that an operator has set', async () => {
  const { account, owner } = await newAccountOwner(app)
  const { accountId } = account
  const person = await newConsoleUser(app, accountId, { role: 'admin', grants: ['api_keys'] })
  await transaction(app.db, async (trx) => {
    const scope = writeScope(trx, accountId)
    await setQuota(scope, 'requests_per_minute', 600)
    await updateRateLimit(scope, person.userId, 1_200, new Date())
  })
  expect((await owner.get('/settings')).text).toContain('600 requests per minute and user')
  expect((await owner.get(`/people/${account.userId}`)).text).toContain('600 requests per minute')
  expect((await owner.get(`/people/${person.userId}`)).text).toContain('1,200 requests per minute')
  const newKey = await (await visitor(app, person)).get('/api-keys/new')
  expect(newKey.text).toContain('1,200 requests per minute')
})
