/** Lists and pages of records. */
import { beforeAll, describe, expect, it } from 'vitest'
import { type OperationRow, operations } from '../../generated/operations.ts'
import { resources } from '../../generated/resources.ts'
import {
  type Body,
  expectSuccess,
  newApplication,
  newJob,
  newParticipant,
  newPayment,
  newTask,
} from '../handlers/new-records.ts'
import { type Client, sharedApp } from '../helpers.ts'
import { mainText, recordIdsIn, submitForm, unescapeHtml } from './forms.ts'
import { apiPath, newOwner, type Owner, QUESTIONS, resourceBySlug } from './record-forms.ts'

const app = sharedApp()

describe('lists', () => {
  let owner: Owner
  beforeAll(async () => {
    owner = await newOwner(app)
    await seed(owner.client)
    await seed((await newOwner(app)).client)
  })

  async function seed(client: Client): Promise<void> {
    const people: Body[] = []
    for (let i = 0; i < 30; i++)
      people.push(
        await newParticipant(client, {
          full_name: `${['Ada', 'zoë', '<b>Bob</b>'][i % 3]} ${i}`,
          email: i % 2 ? null : `p${i}@example.com`,
          status: ['active', 'inactive', 'archived'][i % 3],
          tags: i % 4 ? [] : ['vip'],
          external_id: i % 5 ? null : `crm ${i}&=`,
        }),
      )
    const [ada, zoe] = people
    const [job, other] = [
      await newJob(client, { screening_questions: QUESTIONS }),
      await newJob(client, { title: 'Driver', status: 'draft' }),
    ]
    void other
    await newApplication(client, {
      job_id: job.id,
      participant_id: ada.id,
      answers: { french: true, years: 5 },
    })
    await newApplication(client, { job_id: job.id, participant_id: zoe.id })
    for (let i = 0; i < 3; i++) {
      const task = await newTask(client, {
        title: `Task ${i}`,
        participant_id: i ? ada.id : null,
        due_at: i ? `2027-0${i}-01T00:00:00Z` : null,
      })
      await newPayment(client, {
        participant_id: (i ? ada : zoe).id,
        task_id: task.id,
        amount_minor: 100 * (3 - i),
        currency: i ? 'EUR' : 'USD',
      })
      await expectSuccess(
        client.post('/exports', { resource: i ? 'tasks' : 'jobs', format: 'csv' }),
      )
    }
  }

  /** Values of filters that the schema does not determine. */
  async function valueFor(client: Client, slug: string, name: string): Promise<string> {
    const { data } = (await client.get(`${apiPath(resourceBySlug(slug))}?page[size]=100`)).body
    if (/_(after|before)$/.test(name)) return '2027-01-15T00:00:00.000Z'
    const known: Record<string, string> = {
      search: slug === 'jobs' ? 'driv' : 'ZOË',
      tag: 'vip',
      external_id: 'crm 5&=',
    }
    const values = data
      .map((record: Body) => record[name])
      .filter((value: unknown) => value !== null)
    return known[name] ?? String(values[0])
  }

  /** As the console writes them, by the field that the form has for each. */
  const rows = resources.flatMap((resource) => {
    const { sorts, filters } = operations[resource.operations.list] as OperationRow
    return [
      ...sorts
        .flatMap((sort) => [sort, `-${sort}`])
        .map((sort) => ({ slug: resource.slug, name: `sort=${sort}`, sort })),
      ...Object.keys(filters).map((name) => ({
        slug: resource.slug,
        name: `filter[${name}]`,
        sort: '',
      })),
    ]
  })
  it.each(rows)(
    '$slug by $name: the same records in the same order as the API',
    async ({ slug, name, sort }) => {
      const query = sort
        ? name
        : `${name}=${encodeURIComponent(await valueFor(owner.client, slug, name.slice(7, -1)))}`
      const page = await owner.visits.get(`/records/${slug}?${query}`)
      const { data, meta } = (await owner.client.get(`${apiPath(resourceBySlug(slug))}?${query}`))
        .body
      expect(page.status).toBe(200)
      expect(recordIdsIn(page.text, slug)).toEqual(data.map(({ id }: Body) => id))
      if (meta.total > 0) expect(mainText(page.text)).toContain(`of ${meta.total} `)
      // The form holds it, so that the next filter is added to it.
      expect(page.text).toMatch(
        sort
          ? new RegExp(`value="${sort}" selected`)
          : new RegExp(`name="${name.replace(/[[\]]/g, '\\$&')}"`),
      )
    },
  )

  it('redirects a submitted filter form to the query of the API, and shows the API request', async () => {
    const sent =
      'filter[search]=&filter[status]=active&filter[status]=inactive&filter[created_after]=2020-01-01T00:00&filter[tag]=it%27s&sort=&page[size]=25'
    const { to } = await owner.visits.get(`/records/participants?${sent}`)
    expect(to).toBe(
      "/records/participants?filter[status]=active,inactive&filter[created_after]=2020-01-01T00:00:00Z&filter[tag]=it's",
    )
    const page = await owner.visits.get(to ?? '')
    expect(page.status).toBe(200)
    const request = unescapeHtml(/data-copy="(curl [^"]+)"/.exec(page.text)?.[1] ?? '')
    expect(request).toBe(
      [
        `curl -G '${app.config.baseUrl}/public/v1/participants'`,
        `-H "Authorization: Bearer $MUSTER_API_KEY"`,
        `--data-urlencode 'filter[status]=active,inactive'`,
        `--data-urlencode 'filter[created_after]=2020-01-01T00:00:00Z'`,
        `--data-urlencode 'filter[tag]=it'\\''s'`,
      ].join(' \\\n  '),
    )
    expect(page.text).toMatch(
      /type="datetime-local"\s+id="field-filter-created_after-" name="filter\[created_after\]"\s+value="2020-01-01T00:00"/,
    )
  })

  it('pages and column heads link with the rest of the query', async () => {
    const links = (page: string): string[] =>
      [...page.matchAll(/href="\/console(\/records\/participants\?[^"]*)"/g)].map(([, to]) =>
        unescapeHtml(to ?? ''),
      )
    const first = await owner.visits.get(
      '/records/participants?filter[status]=active,inactive,archived&sort=full_name',
    )
    expect(first.text).toMatch(
      /<th scope="col" aria-sort="ascending"><a class="sort" href="[^"]*">Full name<\/a>/,
    )
    expect(mainText(first.text)).toContain('1 to 25 of 30')
    const next =
      '/records/participants?filter[status]=active,inactive,archived&sort=full_name&page[number]=2'
    expect(links(first.text)).toContain(next)
    expect(links(first.text)).toContain(
      '/records/participants?filter[status]=active,inactive,archived&sort=-full_name',
    )
    const second = await owner.visits.get(next)
    expect(mainText(second.text)).toContain('26 to 30 of 30')
    expect(links(second.text)).toContain(
      '/records/participants?filter[status]=active,inactive,archived&sort=full_name',
    )
    const falling = await owner.visits.get('/records/participants?sort=-full_name&page[size]=50')
    expect(falling.text).toMatch(/<th scope="col" aria-sort="descending">/)
    expect(links(falling.text)).toContain('/records/participants?page[size]=50')
    expect(recordIdsIn(falling.text, 'participants')).toHaveLength(30)
    const past = await owner.visits.get('/records/participants?page[number]=9')
    expect([past.status, mainText(past.text).includes('This page is empty')]).toEqual([200, true])
    const [, back = ''] = /href="\/console([^"]*)">Previous/.exec(past.text) ?? []
    expect(unescapeHtml(back)).toBe('/records/participants?page[number]=2')
  })

  const REFUSED = [
    'filter[status]=nonsense',
    'filter[created_after]=yesterday',
    'page[size]=1000',
    'page[number]=x',
    'sort=password',
    'sort=email,-email',
    'filter[nothing]=1',
    'elsewhere=1',
    'filter[search]=%00',
  ]
  it.each(REFUSED)('%s: 422 with the message of the API, and the input stays', async (query) => {
    const api = await owner.client.get(`/participants?${query}`)
    const page = await owner.visits.get(`/records/participants?${query}`)
    expect([api.status, page.status]).toEqual([422, 422])
    for (const message of Object.values<string[]>(api.body.errors).flat())
      expect(mainText(page.text)).toContain(message)
    expect(recordIdsIn(page.text, 'participants')).toEqual([])
    const [name = '', value = ''] = query.split('=')
    if (name.startsWith('filter[') && !name.includes('nothing') && !value.includes('%'))
      expect(page.text).toContain(`value="${value}"`)
  })

  it('422 with links to search results for a name in place of an ID', async () => {
    const answer = await owner.visits.get('/records/tasks?filter[participant_id]=ada&sort=title')
    expect(answer.status).toBe(422)
    const [, to = ''] =
      /<a href="\/console(\/records\/tasks\?sort=title&#38;filter\[participant_id\]=[0-9a-f-]{36})">Ada 27</.exec(
        answer.text,
      ) ?? []
    const page = await owner.visits.get(unescapeHtml(to))
    expect([page.status, mainText(page.text).includes('Participant Ada 27')]).toEqual([200, true])
    const stranger = await newOwner(app)
    expect(
      (await stranger.visits.get('/records/tasks?filter[participant_id]=ada')).text,
    ).not.toContain('Ada 2')
  })

  it('empty lists and empty results tell the user what to do', async () => {
    const { visits } = await newOwner(app)
    for (const { slug } of resources) {
      expect(mainText((await visits.get(`/records/${slug}`)).text)).toMatch(
        /No [a-z ]+ yet .*Create the first one here/,
      )
      const [filter] = resourceBySlug(slug).filters
      const option = (filter?.schema.items?.enum ?? [])[0]
      expect(
        mainText((await visits.get(`/records/${slug}?filter[${filter?.name}]=${option}`)).text),
      ).toContain('Nothing matches')
    }
  })
})

describe('the page of a record', () => {
  it('shows all fields, referring records, names of references, and events', async () => {
    const { client, visits } = await newOwner(app)
    const ada = await newParticipant(client, { tags: ['vip'], email: 'ada@example.com' })
    const job = await newJob(client, { screening_questions: QUESTIONS, description: 'Two\nlines' })
    const application = await newApplication(client, {
      job_id: job.id,
      participant_id: ada.id,
      answers: { french: false, extra: 'x' },
    })
    const tasks: Body[] = []
    for (let i = 0; i < 7; i++)
      tasks.push(await newTask(client, { title: `Task ${i}`, participant_id: ada.id }))
    const payment = await newPayment(client, { participant_id: ada.id, task_id: tasks[0].id })

    const person = await visits.get(`/records/participants/${ada.id}`)
    const text = mainText(person.text)
    for (const part of [ada.id, 'ada@example.com', 'vip', 'Active', 'participant.created'])
      expect(text).toContain(part)
    expect(text).toMatch(/Tasks 7 See all New task Task .* Task 6 /)
    expect(text).not.toContain('Task 1')
    expect(person.text).toContain(`href="/console/records/tasks?filter[participant_id]=${ada.id}"`)
    expect(person.text).toContain(
      `href="/console/records/job-applications/${application.id}">Interpreter, Ada Lovelace</a>`,
    )
    expect(person.text).toContain(
      `href="/console/records/payments/${payment.id}">Ada Lovelace, €125.00</a>`,
    )
    expect(person.text).toContain(`href="/console/records/tasks/new?participant_id=${ada.id}"`)

    const applied = await visits.get(`/records/job-applications/${application.id}`)
    expect(applied.text).toContain(`<a href="/console/records/jobs/${job.id}">Interpreter</a>`)
    expect(mainText(applied.text)).toMatch(/French\? No extra x/)
    expect(mainText((await visits.get(`/records/jobs/${job.id}`)).text)).toMatch(
      /Screening questions 2 .*years Years\? Nice to have Equals 5/,
    )
    const paid = await visits.get(`/records/payments/${payment.id}`)
    expect(paid.text).toContain(`<a href="/console/records/tasks/${tasks[0].id}">Task 0</a>`)
    const list = await visits.get('/records/payments')
    expect(list.text).toContain(
      `<a href="/console/records/participants/${ada.id}">Ada Lovelace</a>`,
    )
    expect(mainText(paid.text)).toMatch(/Amount €125\.00 /)
    expect(mainText(paid.text)).not.toContain('minor')
  })

  it.each([
    { amount_minor: 12500, currency: 'JPY', shown: '¥12,500' },
    { amount_minor: 12500, currency: 'HUF', shown: 'HUF\u00a0125.00' },
    { amount_minor: 1, currency: 'BHD', shown: 'BHD\u00a00.001' },
    { amount_minor: 999_999_999_999, currency: 'USD', shown: '$9,999,999,999.99' },
    { amount_minor: 5, currency: 'XCG', shown: '0.05' },
  ])(
    'shows $amount_minor of $currency as an amount, in the list too',
    async ({ shown, ...given }) => {
      const { client, visits } = await newOwner(app)
      const payment = await newPayment(client, given)
      for (const path of ['/records/payments', `/records/payments/${payment.id}`])
        expect((await visits.get(path)).text).toContain(shown)
    },
  )

  it('shows the error of the API when a referenced record is deleted, and changes nothing', async () => {
    const { client, visits } = await newOwner(app)
    const ada = await newParticipant(client)
    await newApplication(client, { participant_id: ada.id })
    const answer = await submitForm(visits, `/records/participants/${ada.id}/delete`, {})
    const api = await client.delete(`/participants/${ada.id}`)
    expect([answer.status, api.status]).toEqual([422, 422])
    expect(mainText(answer.text)).toContain(`Participant ${api.body.errors.participant[0]}`)
    expect((await client.get(`/participants/${ada.id}`)).status).toBe(200)
  })
})
