import { describe, expect, it } from 'vitest'
import { type Body, eventsAbout, newParticipant } from '../handlers/new-records.ts'
import { type Client, sharedApp } from '../helpers.ts'
import { mainForm, mainText, submitForm, type Values, withValues } from './forms.ts'
import { apiPath, newOwner, newRecordOfEach, resourceBySlug } from './record-forms.ts'

const app = sharedApp()

describe('concurrent updates', () => {
  async function meanwhile(slug: string, record: Body, client: Client, by: object): Promise<void> {
    expect((await client.patch(`${apiPath(resourceBySlug(slug))}/${record.id}`, by)).status).toBe(
      200,
    )
  }

  it('409 shows the stored values beside the typed ones, and overwrites nothing', async () => {
    const { client, visits } = await newOwner(app)
    const record = await newParticipant(client, {
      email: 'ada@example.com',
      phone: '1',
      tags: ['a'],
    })
    const edit = `/records/participants/${record.id}/edit`
    const form = mainForm((await visits.get(edit)).text)
    await meanwhile('participants', record, client, {
      email: 'countess@example.com',
      phone: '2',
      tags: ['b'],
    })
    const told = await visits.post(edit, withValues(form, { email: 'lovelace@example.com' }))
    expect(told.status).toBe(409)
    expect(mainText(told.text)).toContain('Someone else has updated this record.')
    expect(mainText(told.text)).toContain('Now stored: countess@example.com')
    const stored = (await client.get(`/participants/${record.id}`)).body
    expect(stored).toMatchObject({ email: 'countess@example.com', phone: '2', tags: ['b'] })

    // The form keeps the input, and shows the other user's values in the other fields.
    const again = mainForm(told.text)
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

  it('409 for every resource, also after a validation error', async () => {
    const { client, visits } = await newOwner(app)
    const records = await newRecordOfEach(client)
    const theirs: Record<string, [by: object, typed: Values, wrong: Values]> = {
      participants: [{ phone: '5' }, { full_name: 'New' }, { email: 'nonsense' }],
      tasks: [{ description: 'theirs' }, { title: 'New' }, { title: '' }],
      jobs: [{ description: 'theirs' }, { title: 'New' }, { title: '' }],
      'job-applications': [
        { answers: { a: 1 } },
        { status: 'shortlisted' },
        { status: 'nonsense' },
      ],
      payments: [{ note: 'theirs' }, { amount_minor: '7' }, { amount_minor: 'x' }],
    }
    for (const [slug, [by, typed, wrong]] of Object.entries(theirs)) {
      const id = records[slug]?.id
      const edit = `/records/${slug}/${id}/edit`
      const refused = await submitForm(visits, edit, { ...typed, ...wrong })
      expect([slug, refused.status]).toEqual([slug, 422])
      const before = await eventsAbout(client, id ?? '')
      await meanwhile(slug, { id }, client, by)
      const told = await visits.post(
        edit,
        withValues(
          mainForm(refused.text),
          typed.email === undefined ? { ...typed, ...(wrong.email && { email: '' }) } : typed,
        ),
      )
      expect([slug, told.status]).toEqual([slug, 409])
      expect((await eventsAbout(client, id ?? '')).length).toBe(before.length + 1)
    }
  })

  it('409 for the deletion of an updated record, 404 for a deleted one', async () => {
    const { client, visits } = await newOwner(app)
    const record = await newParticipant(client)
    const asked = mainForm((await visits.get(`/records/participants/${record.id}/delete`)).text)
    await meanwhile('participants', record, client, { phone: '2' })
    const told = await visits.post(asked.to, withValues(asked, {}))
    expect([
      told.status,
      mainText(told.text).includes('Someone else has updated this record'),
    ]).toEqual([409, true])
    expect((await client.get(`/participants/${record.id}`)).status).toBe(200)
    expect(await visits.post(asked.to, withValues(mainForm(told.text), {}))).toMatchObject({
      status: 303,
    })
    expect((await client.get(`/participants/${record.id}`)).status).toBe(404)
    expect((await visits.post(asked.to, withValues(asked, {}))).status).toBe(404)
    expect(
      (await visits.post(`/records/participants/${record.id}/edit`, { full_name: 'x' })).status,
    ).toBe(404)
  })
})
