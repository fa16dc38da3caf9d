import { describe, expect, it } from 'vitest'
import {
  parseDateTimeInput,
  shownInInput,
  toDateTimeInput,
  toLinkTime,
} from '../../web/shared/date-time-input.ts'
import { inZone, parseZone, toWallClock, zoneName } from '../../web/shared/zone.ts'
import { sharedApp } from '../helpers.ts'
import { mainText, pathOfLink } from './forms.ts'
import { newOwner } from './record-forms.ts'
import { newAccountOwner, type Visitor } from './visitors.ts'

describe('times of inputs', () => {
  it.each([
    ['UTC', '2026-03-02T09:30', '2026-03-02T09:30:00.000Z', 'UTC'],
    ['UTC', '2026-03-02', '2026-03-02T00:00:00.000Z', 'UTC'],
    ['Europe/Berlin', '2026-03-02T09:30', '2026-03-02T08:30:00.000Z', 'CET'],
    ['Europe/Berlin', '2026-07-02T09:30:01.234', '2026-07-02T07:30:01.234Z', 'CEST'],
    ['Europe/Berlin', '2026-07-02', '2026-07-01T22:00:00.000Z', 'CEST'],
    ['Europe/Berlin', '2026-07-02T09:30Z', '2026-07-02T09:30:00.000Z', 'CEST'],
    ['Asia/Kolkata', '2026-03-02T09:30', '2026-03-02T04:00:00.000Z', 'GMT+5:30'],
    ['America/New_York', '2026-12-31T23:59', '2027-01-01T04:59:00.000Z', 'GMT-5'],
    // The clocks go from 02:00 to 03:00, so 02:30 is 03:30.
    ['Europe/Berlin', '2026-03-29T02:30', '2026-03-29T01:30:00.000Z', 'CEST'],
    // The clocks go from 03:00 to 02:00, so 02:30 comes twice.
    ['Europe/Berlin', '2026-10-25T02:30', '2026-10-25T00:30:00.000Z', 'CEST'],
    ['Europe/Berlin', '2026-10-25T03:00', '2026-10-25T02:00:00.000Z', 'CET'],
  ])('in %s, %s is %s', (zone, text, instant, name) => {
    inZone(zone, () => {
      const time = parseDateTimeInput(text) ?? Number.NaN
      expect(new Date(time).toISOString()).toBe(instant)
      expect(zoneName(time)).toBe(name)
      // A link to the time leads to the same minute in every zone.
      const link = toLinkTime(time)
      expect(parseDateTimeInput(shownInInput(link))).toBe(time - (time % 60_000))
    })
  })

  it.each(['', 'yesterday', '2026-02-31T10:00', '2026-13-40T00:00', '2026-03-02T24:30'])(
    'refuses %j',
    (text) => inZone('Europe/Berlin', () => expect(parseDateTimeInput(text)).toBeUndefined()),
  )

  it.each([
    ['europe/berlin', 'Europe/Berlin'],
    ['UTC', 'UTC'],
    ['Mars/Base', undefined],
    ['+01:00', undefined],
    ['', undefined],
    ['x'.repeat(10_000), undefined],
  ])('the zone %s is %s', (name, zone) => expect(parseZone(name)).toBe(zone))

  it('are in UTC outside of a zone', () => expect(toWallClock(0)).toBe('1970-01-01T00:00:00'))
})

const app = sharedApp()

describe('the time zone of a visitor', () => {
  const withCookies = (visits: Visitor, cookies: string) => ({
    Cookie: `${visits.cookie}; ${cookies}`,
  })
  const BERLIN = 'muster-detected-zone=Europe/Berlin'

  it('is the one that the browser detects, until the visitor chooses another one', async () => {
    const { owner } = await newAccountOwner(app)
    const pageWith = async (cookies: string): Promise<string> =>
      mainText((await owner.get('/requests', withCookies(owner, cookies))).text)
    expect(await pageWith('x=y')).toContain('Times are in UTC.')
    expect(await pageWith('muster-detected-zone=Mars/Base')).toContain('Times are in UTC.')
    expect(await pageWith(BERLIN)).toContain('Times are in Europe/Berlin.')
    const { text } = await owner.get('/me', withCookies(owner, BERLIN))
    expect(text).toContain('Times: Europe/Berlin. Change to UTC.')
    expect(text).toContain('Detected: Europe/Berlin')

    const choose = async (zone: string): Promise<string> => {
      const { headers } = await owner.post('/time-zone', { zone })
      return `${BERLIN}; ${headers.get('set-cookie')?.split(';')[0]}`
    }
    expect(await pageWith(await choose('America/New_York'))).toContain('in America/New York.')
    expect(await pageWith(await choose('UTC'))).toContain('Times are in UTC.')
    expect(await pageWith(await choose(''))).toContain('Times are in Europe/Berlin.')
  })

  it('is the one of the form that they send', async () => {
    const { client, visits: owner } = await newOwner(app)
    const { text } = await owner.get('/records/tasks/new', withCookies(owner, BERLIN))
    expect(text).toContain('name="form:zone" value="Europe/Berlin"')
    const fields = { 'form:zone': 'Europe/Berlin', title: 'Call', due_at: '2027-03-02T09:30' }
    const { to = '' } = await owner.post('/records/tasks/new', fields)
    const dueAt = async () => (await client.get('/tasks')).body.data[0].due_at
    expect(await dueAt()).toBe('2027-03-02T08:30:00.000Z')
    const shown = mainText((await owner.get(to, withCookies(owner, BERLIN))).text)
    expect(shown).toContain('2027-03-02 09:30:00 CET')
    const edit = await owner.get(`${to}/edit`, withCookies(owner, BERLIN))
    expect(edit.text).toContain('value="2027-03-02T09:30"')
  })

  it('keeps a time of the hour that the clocks show twice', async () => {
    const { client, visits: owner } = await newOwner(app)
    const second = '2026-10-25T01:30:00.000Z'
    const { body } = await client.post('/tasks', { title: 'Call', due_at: second })
    const path = `/records/tasks/${body.id}/edit`
    const { text } = await owner.get(path, withCookies(owner, BERLIN))
    expect(text).toContain(`value="${second}"`)
  })

  it.each(['/events', '/audit-log', '/records/participants'])(
    'is that of the presets of %s',
    async (path) => {
      const { visits: owner } = await newOwner(app)
      const list = await owner.get(path)
      const { status, text } = await owner.get(
        pathOfLink(list.text, 'Last hour') ?? '',
        withCookies(owner, BERLIN),
      )
      expect(status).toBe(200)
      const hourAgo = Date.now() - 3_600_000
      const shown = [0, 60_000].map((ms) =>
        inZone('Europe/Berlin', () => `value="${toDateTimeInput(hourAgo - ms)}`),
      )
      expect(shown.some((value) => text.includes(value))).toBe(true)
    },
  )

  it('is that of filters; links have times in UTC', async () => {
    const { owner } = await newAccountOwner(app)
    const { text } = await owner.get(
      '/requests?from=2026-03-02T09:30Z&until=2026-03-02T11:00',
      withCookies(owner, BERLIN),
    )
    expect(mainText(text)).toContain('From 2026-03-02 10:30:00 CET to 2026-03-02 11:00:00 CET')
    expect(text).toContain('value="2026-03-02T10:30"')
  })
})
