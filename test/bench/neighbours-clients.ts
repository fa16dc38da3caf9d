/** The clients of other accounts. They have their own process, so that their work does not delay
 *  the timers of the victim's client. */
import { Agent, request } from 'undici'
import { serveCalls } from './child.ts'

const NETWORKS = 6
const dispatcher = new Agent()
let signedIn = 0

const calls = {
  /** Sign-ins with a wrong password, all at once, from several IP addresses. */
  async signIn(baseUrl: string, count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, (_, number) => signIn(baseUrl, number)))
  },

  /** A client of each token reads the URL again and again. Returns the number of server errors. */
  async read(url: string, tokens: string[], durationMs: number): Promise<number> {
    const deadline = performance.now() + durationMs
    const failed = await Promise.all(tokens.map((token) => readUntil(deadline, url, token)))
    return failed.reduce((sum, count) => sum + count, 0)
  },
}
export type Clients = typeof calls
serveCalls(calls)

async function signIn(baseUrl: string, number: number): Promise<void> {
  const { body } = await request(`${baseUrl}/console/sign-in`, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'x-forwarded-for': `203.0.113.${(number % NETWORKS) + 1}`,
    },
    body: new URLSearchParams({
      email: `user.${signedIn++}@example.com`,
      password: 'a wrong password',
    }).toString(),
    dispatcher,
  })
  await body.dump()
}

async function readUntil(deadline: number, url: string, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` }
  let failed = 0
  while (performance.now() < deadline) {
    const { statusCode, body } = await request(url, { headers, dispatcher })
    await body.dump({ limit: 100_000_000 })
    if (statusCode >= 500) failed++
  }
  return failed
}
