/** Very deep or large JSON: it is displayed unchanged, and refused in a form. */
import { describe, expect, it } from 'vitest'
import { highlightJson, prettyJson } from '../../web/console/json-block.ts'
import { html } from '../../web/shared/html.ts'
import { newParticipant } from '../handlers/new-records.ts'
import { sharedApp, startApp, until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { mainForm, mainText, withValues } from './forms.ts'
import { newWebhookAdmin } from './hooks.ts'
import { logRequests } from './logged-requests.ts'
import { newOwner } from './record-forms.ts'
import { visitor } from './visitors.ts'

const app = sharedApp()

const deep = (levels: number, inner = ''): string => '['.repeat(levels) + inner + ']'.repeat(levels)
const zeros = (count: number): string => Array.from({ length: count }, () => '0').join(',')

describe('prettyJson', () => {
  it.each([
    '{}',
    '[]',
    '[[],{}]',
    '{"a":[1,{"b":null,"c":true}],"d":"x, {y}: [\\"z\\"]\\\\"}',
    ' { "a" : [ 1 , -2.5 ] } ',
    '"text"',
    '0',
    deep(32),
  ])('%s: the same text as JSON.stringify', (text) => {
    expect(prettyJson(text)).toBe(JSON.stringify(JSON.parse(text), null, 2))
  })

  it('keeps the notation of each value', () => {
    expect(prettyJson('[12345678901234567890,1.0,"\\u00e9"]')).toBe(
      '[\n  12345678901234567890,\n  1.0,\n  "\\u00e9"\n]',
    )
  })

  it.each([
    ['no JSON', '{"a":'],
    ['deeper than 32', deep(33)],
    ['so deep that it overflows', deep(1_000_000)],
    ['larger than 256 KiB with its indentation', deep(30, zeros(30_000))],
  ])('%s: undefined, so that the caller shows the text itself', (_, text) => {
    expect(prettyJson(text)).toBeUndefined()
  })

  it('highlights at most 5,000 values', () => {
    const text = html`${highlightJson(prettyJson(`[${zeros(30_000)}]`) ?? '')}`.text
    expect(text.match(/<span/g)).toHaveLength(5_000)
    expect(text.match(/0/g)).toHaveLength(30_000)
  })
})

describe('a body that would grow by its indentation', () => {
  it('of a request, to gigabytes: shown unchanged', async () => {
    const account = await app.newAccount()
    const owner = await visitor(app, account)
    // Each is smaller than 64 KiB.
    for (const body of [deep(4_200, zeros(28_000)), deep(30_000), deep(31, zeros(32_000))]) {
      const [id] = await logRequests(app, account, [{ responseBody: body, requestBody: body }])
      const { text, status } = await owner.get(`/requests/${id}`)
      expect(status).toBe(200)
      expect(text.length).toBeLessThan(1_000_000)
      expect(text).toContain(body)
      expect(text).not.toContain('Truncated after 64 KiB')
    }
  })

  it('of the response to a delivery, to megabytes: shown unchanged', async () => {
    const body = deep(1_000, zeros(7_000))
    await using receiver = await startReceiver({ answers: [{ status: 500, body }] })
    await using worker = await startApp({ role: 'all' })
    const admin = await newWebhookAdmin(worker)
    const webhookId = await admin.subscribe(receiver.url)
    await admin.emit()
    const id = await until('an attempt has ended', async () => {
      const [delivery] = await admin.deliveries()
      return delivery?.attempts === 1 && delivery.id
    })
    const { text } = await admin.visitor.get(`/webhooks/${webhookId}/deliveries/${id}`)
    expect(text).toContain(body)
    expect(text.length).toBeLessThan(200_000)
  })
})

describe('a record form with too deep or too large JSON', () => {
  const TOO_DEEP = 'The body is nested deeper than 32 levels.'
  const TOO_MANY = 'The body has more than 10,000 fields and entries.'
  const tooManyTags = Array.from({ length: 10_001 }, (_, index) => `t${index}`).join('\n')

  it.each([
    ['more than 10,000 entries', TOO_MANY, { tags: tooManyTags }],
    ['deeper than 32', TOO_DEEP, { 'tags:kind': 'json', tags: deep(33, '"x"') }],
    ['so deep that it overflows', TOO_DEEP, { 'tags:kind': 'json', tags: deep(100_000) }],
  ])(
    '%s: 422 above the form with the input, for a new and for an updated record',
    async (_, problem, input) => {
      const { visits, client } = await newOwner(app)
      const { id } = await newParticipant(client)
      for (const formPath of ['/records/participants/new', `/records/participants/${id}/edit`]) {
        const form = mainForm((await visits.get(formPath)).text)
        const answer = await visits.post(
          formPath,
          withValues(form, { full_name: 'Ada Lovelace', ...input }),
        )
        expect(answer.status).toBe(422)
        expect(mainText(answer.text)).toContain(problem)
        const fields = new Map(
          mainForm(answer.text).fields.map(([name, value]) => [
            name,
            value.replaceAll('\r\n', '\n'),
          ]),
        )
        expect(fields.get('full_name')).toBe('Ada Lovelace')
        expect(fields.get('tags')).toBe(input.tags)
      }
    },
  )
})
