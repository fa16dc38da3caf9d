/** New fields and resources of the contract appear in the console without new code for its
 *  pages. */
import { expect, test } from 'vitest'
import { mainForm, mainText, type Values, withValues } from '../console/forms.ts'
import { copyOfRepository, whenReady } from './tree.ts'
import { addVenues } from './venues.ts'

const LONG_MS = 300_000

const FIELD = `        nickname:
          type: string
          nullable: true
          description: What friends say.
          maxLength: 40
`

async function signedIn(url: string, { email, password }: { email: string; password: string }) {
  const send = (path: string, cookie: string, body?: Values) =>
    fetch(`${url}/console${path}`, {
      method: body ? 'POST' : 'GET',
      redirect: 'manual',
      headers: {
        Cookie: cookie,
        ...(body && { 'Content-Type': 'application/x-www-form-urlencoded' }),
      },
      body:
        body &&
        new URLSearchParams(
          Object.entries(body).flatMap(([name, value]) =>
            [value ?? []].flat().map((one): [string, string] => [name, one]),
          ),
        ),
    })
  const cookie =
    (await send('/sign-in', '', { email, password })).headers.get('set-cookie')?.split(';')[0] ?? ''
  const get = async (path: string): Promise<string> => (await send(path, cookie)).text()
  return {
    get,
    /** Submits the form of a page and returns the page that the redirect leads to. */
    async fill(path: string, values: Values): Promise<string> {
      const form = mainForm(await get(path))
      const answer = await send(form.to, cookie, withValues(form, values))
      expect([path, answer.status]).toEqual([path, 303])
      return get(answer.headers.get('location')?.replace('/console', '') ?? '')
    },
  }
}

test(
  'a field and a resource of docs/new-resource.md: in the navigation, the list, the forms and the pages',
  async () => {
    await using tree = await copyOfRepository()
    await addVenues(tree)
    for (const schema of ['Participant', 'ParticipantCreate', 'ParticipantUpdate']) {
      const text = await tree.read('openapi.yaml')
      const start = text.indexOf(
        '        phone:\n',
        text.indexOf(`\n    ${schema}:\n`, text.indexOf('\n  schemas:\n')),
      )
      await tree.write('openapi.yaml', text.slice(0, start) + FIELD + text.slice(start))
    }
    expect(await tree.run('bin/muster.js', ['generate', '--resource', 'venues'])).toMatchObject({
      status: 0,
    })
    const { running, url, first } = await whenReady(tree, { VALIDATE_RESPONSES: 'off' })
    if (!first) throw new Error('The first start created no account')
    const visitor = await signedIn(url, first)

    const empty = await visitor.get('/records/venues')
    expect(mainText(empty)).toContain('No venues yet Where things take place.')
    expect(empty).toContain('href="/console/records/venues" aria-current="page"')
    expect(mainText(await visitor.get('/records/venues/new'))).toMatch(
      /Name The name of the venue\. At most 200 characters\. Capacity optional The number of people that the venue holds\./,
    )
    const page = await visitor.fill('/records/venues/new', { name: 'Town hall', capacity: '240' })
    expect(mainText(page)).toMatch(/Town hall Open .* Capacity 240 .* venue\.created/)
    const [, id] = /\/records\/venues\/([0-9a-f-]{36})\/edit/.exec(page) ?? []
    expect(
      mainText(
        await visitor.fill(`/records/venues/${id}/edit`, { status: 'closed', capacity: '' }),
      ),
    ).toMatch(/Town hall Closed .* Capacity – /)
    const list = mainText(await visitor.get('/records/venues?filter[status]=closed&sort=-name'))
    expect(list).toMatch(
      /Status Open Closed .*Name Capacity Status Created at .*Town hall – Closed/,
    )

    expect(await visitor.get('/records/participants/new')).toContain('name="nickname"')
    expect(mainText(await visitor.get('/records/participants/new'))).toContain(
      'Nickname optional What friends say. At most 40 characters.',
    )
    await visitor.fill('/records/participants/new', { full_name: 'Ada Lovelace' })
    expect(mainText(await visitor.get('/records/participants'))).toMatch(
      /Full name Email Nickname Phone/,
    )
    await running.stop()
  },
  LONG_MS,
)
