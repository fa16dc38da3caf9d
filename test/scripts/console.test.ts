/** New fields and resources of the contract appear in the console without new code for its
 *  pages. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mainForm, mainText, type Values, withValues } from '../console/forms.ts'
import { copyOfRepository, serveTree, type Tree } from './tree.ts'
import { addVenues } from './venues.ts'

const TIMEOUT_MS = 300_000

const NICKNAME = `        nickname:
          type: string
          nullable: true
          description: What friends say.
          maxLength: 40
`

let tree: Tree
let pages: Awaited<ReturnType<typeof signIn>>

beforeAll(async () => {
  tree = await copyOfRepository()
  await addVenues(tree)
  await tree.write('openapi.yaml', withNickname(await tree.read('openapi.yaml')))
  expect(await tree.muster(['generate', '--resource', 'venues'])).toMatchObject({ status: 0 })
  const { url, first } = await serveTree(tree, { VALIDATE_RESPONSES: 'off' })
  if (!first) throw new Error('The first start created no account')
  pages = await signIn(url, first)
}, TIMEOUT_MS)
afterAll(() => tree?.[Symbol.asyncDispose]())

/** Adds the field before `phone` to participants. */
function withNickname(openapi: string): string {
  let changed = openapi
  for (const schema of ['Participant', 'ParticipantCreate', 'ParticipantUpdate']) {
    const schemas = changed.indexOf('\n  schemas:\n')
    const phone = changed.indexOf(
      '        phone:\n',
      changed.indexOf(`\n    ${schema}:\n`, schemas),
    )
    changed = changed.slice(0, phone) + NICKNAME + changed.slice(phone)
  }
  return changed
}

async function signIn(url: string, { email, password }: { email: string; password: string }) {
  const send = (path: string, cookie: string, fields?: Values) =>
    fetch(`${url}/console${path}`, {
      method: fields ? 'POST' : 'GET',
      redirect: 'manual',
      headers: { Cookie: cookie },
      body: fields && toFormBody(fields),
    })
  const { headers } = await send('/sign-in', '', { email, password })
  const cookie = headers.get('set-cookie')?.split(';')[0] ?? ''
  const get = async (path: string): Promise<string> => (await send(path, cookie)).text()
  return {
    get,
    /** Submits the form of a page and returns the page that the redirect leads to. */
    async submit(path: string, values: Values): Promise<string> {
      const form = mainForm(await get(path))
      const response = await send(form.to, cookie, withValues(form, values))
      expect([path, response.status]).toEqual([path, 303])
      return get(response.headers.get('location')?.replace('/console', '') ?? '')
    },
  }
}

function toFormBody(fields: Values): URLSearchParams {
  const body = new URLSearchParams()
  for (const [name, value] of Object.entries(fields))
    for (const one of [value ?? []].flat()) body.append(name, one)
  return body
}

test('a resource of docs/new-resource.md is in the navigation, and its list is empty', async () => {
  const page = await pages.get('/records/venues')
  expect(page).toContain('href="/console/records/venues" aria-current="page"')
  expect(mainText(page)).toMatch(
    /^ ?Venues Where things take place\. .* No venues yet Create the first one here/,
  )
})

test('a record of the resource is created, edited and listed', async () => {
  expect(mainText(await pages.get('/records/venues/new'))).toMatch(
    /Name The name of the venue\. Capacity optional The number of people that the venue holds\./,
  )
  const page = await pages.submit('/records/venues/new', { name: 'Town hall', capacity: '240' })
  expect(mainText(page)).toMatch(/Town hall Open .* Capacity 240 .* venue\.created/)
  const [, id] = /\/records\/venues\/([0-9a-f-]{36})\/edit/.exec(page) ?? []
  const change = { status: 'closed', capacity: '' }
  expect(mainText(await pages.submit(`/records/venues/${id}/edit`, change))).toMatch(
    /Town hall Closed .* Capacity – /,
  )
  const list = mainText(await pages.get('/records/venues?filter[status]=closed&sort=-name'))
  expect(list).toMatch(/Status Open Closed .*Name Status Capacity Created .*Town hall Closed –/)
})

test('a new field of a resource is in its form and its list', async () => {
  const form = await pages.get('/records/participants/new')
  expect(form).toContain('name="nickname"')
  expect(mainText(form)).toContain('Nickname optional What friends say.')
  await pages.submit('/records/participants/new', { full_name: 'Ada Lovelace' })
  expect(mainText(await pages.get('/records/participants'))).toMatch(
    /Full name Status Email Nickname Phone/,
  )
})
