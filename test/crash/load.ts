const CLIENTS = 4

/** Creates a participant with an Idempotency-Key. */
export function createWithKey(
  url: string,
  { token, key, name }: { token: string; key: string; name: string },
): Promise<Response> {
  return fetch(`${url}/public/v1/participants`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      'Idempotency-Key': key,
    },
    body: JSON.stringify({ full_name: name }),
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
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  const body = JSON.stringify({ full_name: 'Ada Lovelace' })
  const send = async (method: 'GET' | 'POST'): Promise<void> => {
    const init = method === 'POST' ? { method, headers, body } : { headers }
    const failure = await fetch(`${url}/public/v1/participants`, init).then(
      async (response) => {
        const text = await response.text()
        return response.ok ? undefined : `${method} ${response.status} ${text.slice(0, 200)}`
      },
      (error: Error) => `${method} ${error.message} ${error.cause}`,
    )
    if (failure === undefined) successes++
    else failures.push(failure)
  }
  const runClient = async (): Promise<void> => {
    while (!isStopping) {
      await send('POST')
      await send('GET')
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
