/** The check of test/statements.ts finds statements that do not name the account. */
import { expect, inject, test } from 'vitest'
import { listUnlimited } from '../statements.ts'
import { sharedInstallation } from '../webhooks/harness.ts'

const installation = sharedInstallation()
const JOINED =
  'select 1 from tasks join participants on participants.id = tasks.participant_id where tasks.account_id = $1'

test.runIf(inject('database') === 'postgres').each([
  { given: 'select 1 from tasks where id = $1', want: ['tasks'] },
  { given: 'select 1 from tasks where account_id = $1 and id = $2', want: [] },
  { given: 'select 1 from tasks where account_id = any ($1) and id = $2', want: [] },
  { given: 'select 1 from tasks where account_id <> $1', want: ['tasks'] },
  { given: 'update tasks set title = $1 where id = $2', want: ['tasks'] },
  { given: JOINED, want: ['participants'] },
  { given: `${JOINED} and participants.account_id = tasks.account_id`, want: [] },
  {
    given:
      'select 1 from tasks join participants on participants.account_id = tasks.account_id where tasks.id = $1',
    want: ['tasks, participants', 'participants, tasks'],
  },
  {
    given:
      'select 1 from tasks where account_id = $1 and exists (select 1 from payments where task_id = tasks.id)',
    want: ['payments'],
  },
  { given: 'select 1 from accounts where id = $1', want: [] },
])('$given → $want', async ({ given, want }) => {
  const database = new URL(installation.databaseUrl ?? '').pathname.slice(1)
  const found = await listUnlimited(database, [given])
  expect(found.map((problem) => problem.split(' in: ')[0])).toEqual(
    want.length > 0 ? [expect.toBeOneOf(want)] : [],
  )
})
