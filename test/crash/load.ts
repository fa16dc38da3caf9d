/** Clients of the API that create and list records. */

const CLIENTS = 4
const REQUEST_TIMEOUT_MS = 60_000

interface CreateOptions {
  token: string
  /** The Idempotency-Key. */
  key?: string
}

/** Creates a record. `path` is below `/public/v1`. */
export function create(
  url: string,
  path: string,
  body: object,
  { token, key }: CreateOptions,
): Promise<Response> {
  return fetch(`${url}/public/v1${path}`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      ...(key === undefined ? {} : { 'Idempotency-Key': key }),
    },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
  })
}

export interface Load {
  /** Resolves to the number of successful requests. */
  stop(): Promise<number>
  /** Responses other than 200 and 201, and errors. */
  failures: string[]
}

/** Clients that create and list participants, one request after the other. */
export function startLoad(url: string, token: string): Load {
  const failures: string[] = []
  let isStopping = false
  let successes = 0
  const send = async (name: string, request: () => Promise<Response>): Promise<void> => {
    try {
      const response = await request()
      const text = await response.text()
      if (response.ok) successes++
      else failures.push(`${name} ${response.status} ${text.slice(0, 200)}`)
    } catch (error) {
      failures.push(`${name} ${(error as Error).message} ${(error as Error).cause}`)
    }
  }
  const createParticipant = () =>
    create(url, '/participants', { full_name: 'Ada Lovelace' }, { token })
  const listParticipants = () =>
    fetch(`${url}/public/v1/participants`, { headers: { Authorization: `Bearer ${token}` } })
  const runClient = async (): Promise<void> => {
    while (!isStopping) {
      await send('POST', createParticipant)
      await send('GET', listParticipants)
    }
  }
  const clients = Array.from({ length: CLIENTS }, runClient)
  return {
    failures,
    async stop() {
      isStopping = true
      await Promise.all(clients)
      return successes
    },
  }
}
