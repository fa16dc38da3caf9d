/** A record changes between the opening and the submission of its form. */
import { describe, expect, it } from 'vitest'
import { resources } from '../../generated/resources.ts'
import {
  eventsAbout,
  expectSuccess,
  newApplication,
  newParticipant,
} from '../handlers/new-records.ts'
import { type Client, sharedApp } from '../helpers.ts'
import { mainForm, mainText, submitForm, type Values, withValues } from './forms.ts'
import { apiPath, newOwner, newRecordOfEach, resourceBySlug } from './record-forms.ts'

const app = sharedApp()

/** Another user updates the record by API after the form has been opened. */
async function updateMeanwhile(
  client: Client,
  slug: string,
  id: string,
  change: object,
): Promise<void> {
  await expectSuccess(client.patch(`${apiPath(resourceBySlug(slug))}/${id}`, change))
}

interface Conflict {
  slug: string
  /** The update of another user. */
  theirs: object
  /** The input of the form. */
  ours: Values
  /** Input that gets 422, for fields that have valid values in `ours`. */
  invalid: Values
}

const CONFLICTS: Conflict[] = [
  {
    slug: 'participants',
    theirs: { phone: '5' },
    ours: { full_name: 'New', email: '' },
    invalid: { email: 'nonsense' },
  },
  {
    slug: 'tasks',
    theirs: { description: 'theirs' },
    ours: { title: 'New' },
    invalid: { title: '' },
  },
  {
    slug: 'jobs',
    theirs: { description: 'theirs' },
    ours: { title: 'New' },
    invalid: { title: '' },
  },
  {
    slug: 'job-applications',
    theirs: { answers: { a: 1 } },
    ours: { status: 'shortlisted' },
    invalid: { status: 'nonsense' },
  },
  {
    slug: 'payments',
    theirs: { note: 'theirs' },
    ours: { amount_minor: '7', 'amount_minor:seen': '€7.00' },
    invalid: { amount_minor: 'x' },
  },
]

describe('concurrent updates', () => {
  it('the form of an updated record: 409, shows the stored values beside the input, and overwrites nothing', async () => {
    const { client, visits } = await newOwner(app)
    const record = await newParticipant(client, {
      email: 'ada@example.com',
      phone: '1',
      tags: ['a'],
    })
    const edit = `/records/participants/${record.id}/edit`
    const form = mainForm((await visits.get(edit)).text)
    const theirs = { email: 'countess@example.com', phone: '2', tags: ['b'] }
    await updateMeanwhile(client, 'participants', record.id, theirs)
    const conflict = await visits.post(edit, withValues(form, { email: 'lovelace@example.com' }))
    expect(conflict.status).toBe(409)
    expect(mainText(conflict.text)).toContain('Someone else has updated this record.')
    expect(mainText(conflict.text)).toContain('Now stored: countess@example.com')
    const stored = (await client.get(`/participants/${record.id}`)).body
    expect(stored).toMatchObject(theirs)

    // The form keeps the input, and shows the other user's values in the other fields.
    const again = mainForm(conflict.text)
    expect(withValues(again, {})).toMatchObject({
      email: 'lovelace@example.com',
      phone: '2',
      tags: 'b',
      updated_at: stored.updated_at,
    })
    expect(await visits.post(edit, withValues(again, {}))).toMatchObject({ status: 303 })
    expect((await client.get(`/participants/${record.id}`)).body).toMatchObject({
      email: 'lovelace@example.com',
      phone: '2',
      tags: ['b'],
    })
    expect(await eventsAbout(client, record.id)).toEqual([
      'participant.created',
      'participant.updated',
      'participant.updated',
    ])
  })

  it('the form of updated answers: 409, shows the stored answers', async () => {
    const { client, visits } = await newOwner(app)
    const application = await newApplication(client, { answers: { grade: 1 } })
    const edit = `/records/job-applications/${application.id}/edit`
    const form = mainForm((await visits.get(edit)).text)
    await updateMeanwhile(client, 'job-applications', application.id, { answers: { grade: 2 } })
    const conflict = await visits.post(edit, withValues(form, { 'answers.grade': '3' }))
    expect(conflict.status).toBe(409)
    expect(mainText(conflict.text)).toContain('Now stored: {"grade":2}')
  })

  it('the same form again, because its response got lost: the changes are saved, once', async () => {
    const { client, visits } = await newOwner(app)
    const record = await newParticipant(client, { email: 'ada@example.com' })
    const edit = `/records/participants/${record.id}/edit`
    const form = mainForm((await visits.get(edit)).text)
    const sent = withValues(form, { email: 'lovelace@example.com' })
    expect(await visits.post(edit, sent)).toMatchObject({ status: 303 })
    expect(mainText((await visits.submit(edit, sent)).text)).toContain('Changes saved.')
    expect(await eventsAbout(client, record.id)).toEqual([
      'participant.created',
      'participant.updated',
    ])
  })

  it('CONFLICTS has every resource that users can update', () => {
    const updated = resources.filter(({ operations }) => operations.update !== null)
    expect(CONFLICTS.map(({ slug }) => slug).toSorted()).toEqual(
      updated.map(({ slug }) => slug).toSorted(),
    )
  })

  it.each(CONFLICTS)(
    '$slug: 409 when the record is updated after the form got a validation error',
    async ({ slug, theirs, ours, invalid }) => {
      const { client, visits } = await newOwner(app)
      const id = (await newRecordOfEach(client))[slug]?.id ?? ''
      const edit = `/records/${slug}/${id}/edit`
      const refused = await submitForm(visits, edit, { ...ours, ...invalid })
      expect(refused.status).toBe(422)
      const before = await eventsAbout(client, id)
      await updateMeanwhile(client, slug, id, theirs)
      const conflict = await visits.post(edit, withValues(mainForm(refused.text), ours))
      expect(conflict.status).toBe(409)
      expect(await eventsAbout(client, id)).toHaveLength(before.length + 1)
    },
  )

  it('the deletion of an updated record: 409; confirmed again, it deletes the record', async () => {
    const { client, visits } = await newOwner(app)
    const { id } = await newParticipant(client)
    const form = mainForm((await visits.get(`/records/participants/${id}/delete`)).text)
    await updateMeanwhile(client, 'participants', id, { phone: '2' })
    const conflict = await visits.post(form.to, withValues(form, {}))
    expect(conflict.status).toBe(409)
    expect(mainText(conflict.text)).toContain('Someone else has updated this record')
    expect((await client.get(`/participants/${id}`)).status).toBe(200)
    const again = await visits.post(form.to, withValues(mainForm(conflict.text), {}))
    expect(again.status).toBe(303)
    expect((await client.get(`/participants/${id}`)).status).toBe(404)
  })

  it('the deletion and the update of a deleted record: 404', async () => {
    const { client, visits } = await newOwner(app)
    const { id } = await newParticipant(client)
    const form = mainForm((await visits.get(`/records/participants/${id}/delete`)).text)
    expect((await client.delete(`/participants/${id}`)).status).toBe(204)
    expect((await visits.post(form.to, withValues(form, {}))).status).toBe(404)
    const update = await visits.post(`/records/participants/${id}/edit`, { full_name: 'x' })
    expect(update.status).toBe(404)
  })
})
