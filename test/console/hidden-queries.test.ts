/** A query of a logged request can name records. Users who may not see these records do not see the
 *  query. */
import { beforeAll, describe, expect, it } from 'vitest'
import { sharedApp, type TestAccount } from '../helpers.ts'
import { curlCommandIn, figuresOf, requestIdsIn } from './forms.ts'
import { logRequests } from './logged-requests.ts'
import {
  inEveryModule,
  newAccountOwner,
  newConsoleUser,
  type Visitor,
  visitor,
} from './visitors.ts'

let account: TestAccount
let owner: Visitor
const app = sharedApp()
beforeAll(async () => {
  ;({ account, owner } = await newAccountOwner(app))
})

describe('the query of a request', () => {
  const SECRET = 'ada@example.com'
  const readAll = inEveryModule('read')
  let ids: string[]
  let withoutAccess: Visitor
  let withAccess: Visitor
  beforeAll(async () => {
    const at = Date.now() - 1_000
    ids = await logRequests(app, account, [
      {
        at,
        operationId: 'listParticipants',
        path: `/public/v1/participants?filter[email]=${SECRET}`,
      },
      {
        at,
        operationId: null,
        status: 404,
        path: `/public/v1/participants/?filter[email]=${SECRET}`,
      },
      { at, operationId: 'listTasks', path: '/public/v1/tasks?filter[search]=library' },
    ])
    withoutAccess = await visitor(
      app,
      await newConsoleUser(app, account.accountId, {
        permissions: { ...readAll, participants: 'none' },
      }),
    )
    withAccess = await visitor(
      app,
      await newConsoleUser(app, account.accountId, { permissions: readAll }),
    )
  })

  it('is hidden from users who may not see the records, in the list, the page, the command and the file', async () => {
    for (const path of [
      '/requests',
      '/requests.csv',
      ...ids.slice(0, 2).flatMap((id) => [`/requests/${id}`, `/requests/${id}?row=open`]),
    ]) {
      const hidden = await withoutAccess.get(path)
      expect(hidden.status).toBe(200)
      expect(hidden.text).toContain('/public/v1/participants')
      expect(hidden.text).not.toContain(SECRET)
      expect(hidden.text).not.toContain('filter[email]')
      for (const user of [withAccess, owner]) expect((await user.get(path)).text).toContain(SECRET)
    }
    const { text } = await withoutAccess.get(`/requests/${ids[0]}`)
    expect(curlCommandIn(text)).toContain(`'${app.config.baseUrl}/public/v1/participants'`)
    expect(text).toContain('The query is left out')
  })

  it('is shown for records they may see', async () => {
    for (const path of ['/requests', '/requests.csv', `/requests/${ids[2]}`])
      expect((await withoutAccess.get(path)).text).toContain('filter[search]=library')
  })

  it('cannot be searched by users who may not see it', async () => {
    for (const part of ['ada@', '?filter[email]=', 'ADA@EXAMPLE.COM', '=']) {
      const query = `path=${encodeURIComponent(part)}`
      const { text } = await withoutAccess.get(`/requests?${query}`)
      expect(requestIdsIn(text)).toEqual([])
      expect(figuresOf(text).Requests).toBe('0')
      expect(
        (await withoutAccess.get(`/requests.csv?${query}`)).text.trimEnd().split('\r\n'),
      ).toHaveLength(1)
    }
    expect(
      requestIdsIn((await withoutAccess.get('/requests?path=V1/participants')).text).toSorted(),
    ).toEqual(ids.slice(0, 2).toSorted())
    for (const user of [withAccess, owner])
      expect(requestIdsIn((await user.get('/requests?path=ada@')).text)).toHaveLength(2)
  })

  it('hides bodies and headers, too, from the search, the page and the causes of errors', async () => {
    const [id] = await logRequests(app, account, [
      {
        at: Date.now() - 1_000,
        operationId: 'createParticipant',
        method: 'POST',
        path: '/public/v1/participants',
        status: 422,
        requestBody: '{"email":"grace@example.com"}',
        responseBody: '{"errors":{"email":["belongs to Grace."]}}',
        requestHeaders: '[["Referer","https://example.com/grace"]]',
        responseHeaders: '[["Link","</public/v1/participants?filter[email]=grace>"]]',
      },
    ])
    const search = async (user: Visitor, text: string): Promise<string[]> =>
      requestIdsIn((await user.get(`/requests?text=${encodeURIComponent(text)}`)).text)
    for (const text of ['GRACE@example.com', 'belongs to', 'ada@example.com']) {
      expect(await search(withoutAccess, text), text).toEqual([])
      for (const user of [withAccess, owner])
        expect(await search(user, text), text).toEqual(
          text === 'ada@example.com' ? expect.arrayContaining(ids.slice(0, 2)) : [id],
        )
    }
    expect(await search(withoutAccess, 'LIBRARY')).toEqual([ids[2]])
    for (const path of ['/requests', `/requests/${id}`])
      expect((await withoutAccess.get(path)).text.toLowerCase()).not.toContain('grace')
    const { text } = await owner.get(`/requests/${id}`)
    expect(text).toContain('Referer: https://example.com/grace')
    expect((await owner.get('/requests')).text).toContain('email: belongs to Grace.')
  })
})
