/** Sample records of the demo account, created with the API. */

const DAY_MS = 86_400_000

const NAMES = [
  ...['Ada Lovelace', 'Grace Hopper', 'Katherine Johnson', 'Alan Turing'],
  ...['Annie Easley', 'Edsger Dijkstra', 'Radia Perlman', 'Jean Bartik'],
  ...['Mary Jackson', 'Tim Berners-Lee', 'Barbara Liskov', 'Donald Knuth'],
]

const TASK_TITLES = [
  'Call back',
  'Check references',
  'Send the contract',
  'Collect the laptop',
  'Plan the first day',
]

const JOB = {
  title: 'Barista, Kreuzberg',
  description: 'Mornings, four days a week. Coffee is free, and so is the advice of our guests.',
  status: 'open',
  screening_questions: [
    {
      key: 'permit',
      label: 'Do you have a work permit?',
      requirement: 'must_have',
      expected: true,
    },
    {
      key: 'latte_art',
      label: 'Can you draw a heart?',
      requirement: 'nice_to_have',
      expected: 'yes',
    },
    {
      key: 'years',
      label: 'How many years have you worked behind a bar?',
      requirement: 'nice_to_have',
      operator: 'at_least',
      expected: 2,
    },
    {
      key: 'district',
      label: 'Where do you live?',
      requirement: 'nice_to_have',
      operator: 'one_of',
      expected: ['Kreuzberg', 'Neukölln', 'Mitte'],
    },
  ],
}

type Send = (path: string, body: object, method?: string) => Promise<string>

/** Returns the ID of one record of each resource, by the resource's path segment. */
export async function createRecords(url: string, key: string): Promise<Record<string, string>> {
  const send: Send = async (path, body, method = 'POST') => {
    const response = await fetch(`${url}/public/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return ((await response.json()) as { id: string }).id
  }
  const participants = await createParticipants(send)
  const tasks = await createTasks(send, participants)
  const job = await send('/jobs', JOB)
  await send('/jobs', {
    title: 'Night porter',
    description: 'Somebody has to be awake.',
    status: 'draft',
  })
  return {
    participants: participants[0] ?? '',
    tasks: tasks[0] ?? '',
    jobs: job,
    'job-applications': await createApplications(send, job, participants),
    payments: await createPayments(send, participants, tasks),
    exports: await send('/exports', { resource: 'participants', format: 'csv' }),
  }
}

async function createParticipants(send: Send): Promise<string[]> {
  const ids: string[] = []
  for (const [index, full_name] of NAMES.entries())
    ids.push(
      await send('/participants', {
        full_name,
        email: `${full_name.toLowerCase().replace(/\W+/g, '.')}@example.com`,
        tags: index % 3 === 0 ? ['vip', 'berlin'] : ['berlin'],
        phone: index % 2 === 0 ? '+49 30 1234567' : null,
      }),
    )
  return ids
}

async function createTasks(send: Send, participants: string[]): Promise<string[]> {
  const ids: string[] = []
  for (const [index, title] of TASK_TITLES.entries())
    ids.push(
      await send('/tasks', {
        title,
        participant_id: participants[index],
        due_at: new Date(Date.now() + (index - 2) * DAY_MS).toISOString(),
      }),
    )
  await send(`/tasks/${ids[1]}`, { status: 'completed' }, 'PATCH')
  return ids
}

/** Returns the ID of the last application. */
async function createApplications(
  send: Send,
  job_id: string,
  participants: string[],
): Promise<string> {
  let id = ''
  for (const [index, participant_id] of participants.slice(0, 5).entries())
    id = await send('/job-applications', {
      job_id,
      participant_id,
      answers: {
        permit: index !== 2,
        latte_art: index % 2 === 0 ? 'yes' : 'no',
        years: index + 1,
        district: 'Mitte',
      },
    })
  return id
}

/** Returns the ID of the last payment. */
async function createPayments(
  send: Send,
  participants: string[],
  tasks: string[],
): Promise<string> {
  let id = ''
  for (const [index, participant_id] of participants.slice(0, 4).entries())
    id = await send('/payments', {
      participant_id,
      task_id: tasks[index],
      amount_minor: 12_500 + index * 1_750,
      currency: 'EUR',
      note: 'Travel costs',
    })
  return id
}
