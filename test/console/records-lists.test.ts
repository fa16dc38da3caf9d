/** Lists of records: filters, pages, refused queries, and empty lists. */
import { beforeAll, describe, expect, it } from 'vitest'
import { resources } from '../../generated/resources.ts'
import { type Body, newApplication, newJob, newParticipant } from '../handlers/new-records.ts'
import { type Client, sharedApp } from '../helpers.ts'
import { mainText, pathOfLink, recordIdsIn, unescapeHtml } from './forms.ts'
import { newOwner, type Owner, resourceBySlug } from './record-forms.ts'

const app = sharedApp()

describe('lists', () => {
  let owner: Owner
  beforeAll(async () => {
    owner = await newOwner(app)
    await newParticipants(owner.client)
    await newParticipants((await newOwner(app)).client)
  })

  const STATUSES = ['active', 'inactive', 'archived']

  async function newParticipants(client: Client): Promise<void> {
    for (let i = 0; i < 30; i++)
      await newParticipant(client, {
        full_name: `${['Ada', 'zoë', '<b>Bob</b>'][i % 3]} ${i}`,
        status: STATUSES[i % 3],
      })
  }

  it('a submitted filter form: redirects to the query of the API, and shows its curl command', async () => {
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
        `--data-urlencode 'sort=-created_at'`,
      ].join(' \\\n  '),
    )
    expect(page.text).toMatch(
      /type="datetime-local"\s+id="field-filter-created_after-" name="filter\[created_after\]"\s+value="2020-01-01T00:00"/,
    )
  })

  it('column heads and links to other pages keep the rest of the query', async () => {
    const list = '/records/participants?filter[status]=active,inactive,archived'
    const first = await owner.visits.get(`${list}&sort=full_name`)
    expect(first.text).toMatch(
      /<th scope="col" class="text" aria-sort="ascending"><a class="sort" href="[^"]*">Full name<\/a>/,
    )
    expect(mainText(first.text)).toContain('1 to 25 of 30')
    expect(pathOfLink(first.text, 'Next')).toBe(`${list}&sort=full_name&page[number]=2`)
    expect(pathOfLink(first.text, 'Full name')).toBe(`${list}&sort=-full_name`)
    const second = await owner.visits.get(`${list}&sort=full_name&page[number]=2`)
    expect(mainText(second.text)).toContain('26 to 30 of 30')
    expect(pathOfLink(second.text, 'Previous')).toBe(`${list}&sort=full_name`)

    const descending = await owner.visits.get('/records/participants?sort=-full_name&page[size]=50')
    expect(descending.text).toMatch(/<th scope="col" class="text" aria-sort="descending">/)
    expect(pathOfLink(descending.text, 'Full name')).toBe('/records/participants?page[size]=50')
    expect(recordIdsIn(descending.text, 'participants')).toHaveLength(30)
  })

  it('the list of jobs has the number of applications of each, with a link to them', async () => {
    const { client, visits } = await newOwner(app)
    const [empty, job] = [await newJob(client), await newJob(client)]
    for (let i = 0; i < 2; i++) await newApplication(client, { job_id: job.id })
    const { text } = await visits.get('/records/jobs')
    const pathFor = ({ id }: Body): string => `/records/job-applications?filter[job_id]=${id}`
    expect([pathOfLink(text, '2'), pathOfLink(text, '0')]).toEqual([pathFor(job), pathFor(empty)])
    expect(mainText((await visits.get(pathFor(job))).text)).toContain('2 job applications')
  })

  it('a page after the last one: says that it is empty, and links to the last page', async () => {
    const page = await owner.visits.get('/records/participants?page[number]=9')
    expect(page.status).toBe(200)
    expect(mainText(page.text)).toContain('This page is empty')
    expect(pathOfLink(page.text, 'Previous')).toBe('/records/participants?page[number]=2')
  })

  it.each([
    ...['filter[status]=nonsense', 'filter[created_after]=yesterday', 'page[size]=1000'],
    ...['page[number]=x', 'sort=password', 'sort=email,-email'],
    ...['filter[nothing]=1', 'elsewhere=1', 'filter[search]=%00'],
  ])('%s: 422 with the messages of the API, and no records', async (query) => {
    const api = await owner.client.get(`/participants?${query}`)
    const page = await owner.visits.get(`/records/participants?${query}`)
    expect([api.status, page.status]).toEqual([422, 422])
    for (const message of Object.values<string[]>(api.body.errors).flat())
      expect(mainText(page.text)).toContain(message)
    expect(recordIdsIn(page.text, 'participants')).toEqual([])
  })

  it.each([
    ['filter[status]', 'nonsense'],
    ['filter[created_after]', 'yesterday'],
  ])('%s=%s: the filter keeps the invalid value', async (name, value) => {
    const page = await owner.visits.get(`/records/participants?${name}=${value}`)
    expect(page.text).toContain(`value="${value}"`)
  })

  it('422 with buttons that choose a search result for a name in place of an ID', async () => {
    const answer = await owner.visits.get('/records/tasks?filter[participant_id]=ada&sort=title')
    expect(mainText(answer.text)).toContain('Choose a participant from the list.')
    expect(answer.status).toBe(422)
    const { name, id } = optionIn(answer.text, 'Ada 27')
    // The browser sends the typed text before the value of the button.
    const sent = `filter[participant_id]=ada&sort=title&${name}=${id}`
    const { to } = await owner.visits.get(`/records/tasks?${sent}`)
    expect(to).toBe(`/records/tasks?filter[participant_id]=${id}&sort=title`)
    const page = await owner.visits.get(to ?? '')
    expect([page.status, mainText(page.text).includes('Participant Ada 27')]).toEqual([200, true])
    const stranger = await newOwner(app)
    expect(
      (await stranger.visits.get('/records/tasks?filter[participant_id]=ada')).text,
    ).not.toContain('Ada 2')
  })

  /** The button of a listbox with this text. */
  function optionIn(page: string, text: string): { name?: string; id?: string } {
    const options = page.matchAll(
      /<button name="([^"]+)" value="([^"]+)" role="option"[^>]*>([^<]*<span>[^<]*)/g,
    )
    const [, name, id] = [...options].find(([, , , label]) => label?.includes(text)) ?? []
    return { name, id }
  }

  it('each filter has a chip that removes it', async () => {
    const { data } = (await owner.client.get('/participants?filter[search]=Ada 27')).body
    const filters = `filter[status]=active,inactive&filter[search]=ada&filter[id]=${data[0].id}`
    const page = (await owner.visits.get(`/records/participants?${filters}&sort=email`)).text
    const chips = [...page.matchAll(/<a href="([^"]+)" aria-label="Remove the filter ([^"]+)"/g)]
    expect(chips.map(([, to = '', name]) => [name, unescapeHtml(to)])).toEqual([
      [
        'Status: Active',
        `/console/records/participants?filter[search]=ada&filter[id]=${data[0].id}&sort=email&filter[status]=inactive`,
      ],
      [
        'Status: Inactive',
        `/console/records/participants?filter[search]=ada&filter[id]=${data[0].id}&sort=email&filter[status]=active`,
      ],
      [
        'Search: ada',
        `/console/records/participants?filter[status]=active,inactive&filter[id]=${data[0].id}&sort=email`,
      ],
      [
        `ID: ${data[0].id}`,
        '/console/records/participants?filter[status]=active,inactive&filter[search]=ada&sort=email',
      ],
    ])
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
