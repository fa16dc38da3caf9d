/** The remote service of the commands that use the API instead of the database. */
import { createMuster, type Muster } from '../client/src/client.ts'
import { MusterError } from '../client/src/error.ts'
import { Refused } from '../errors.ts'
import { type Environment, UsageError } from './shell.ts'

/** Whether `MUSTER_URL` names a remote service. */
export function isRemote({ MUSTER_URL }: Environment): boolean {
  return MUSTER_URL !== undefined && MUSTER_URL !== ''
}

/** A client of the service at `MUSTER_URL` with the API key `MUSTER_API_KEY`, or `MUSTER_KEY`. Its
 *  calls throw `Refused`. Throws `UsageError` without the two variables. */
export function connect(environment: Environment): Muster {
  const { MUSTER_URL = '', MUSTER_KEY = '', MUSTER_API_KEY = MUSTER_KEY } = environment
  if (!URL.canParse(MUSTER_URL) || MUSTER_API_KEY === '')
    throw new UsageError(
      'set MUSTER_URL to the URL of the service, for example https://api.example.com, and ' +
        'MUSTER_API_KEY to an API key',
    )
  return createMuster({
    baseUrl: MUSTER_URL.replace(/\/+$/, ''),
    apiKey: MUSTER_API_KEY,
    fetch: (request) =>
      fetch(request).catch((error: Error) => {
        const cause = error.cause instanceof Error ? error.cause : error
        throw new Refused(`${new URL(request.url).origin} cannot be reached: ${cause.message}`)
      }),
  })
}

/** Returns a sentence for an error of the service, or undefined for another error. */
export function describeApiError(error: unknown): string | undefined {
  if (!(error instanceof MusterError)) return undefined
  const problems = Object.entries(error.errors).map(
    ([field, messages]) => `\n  ${field} ${messages.join(' ')}`,
  )
  return `${error.request} returned ${error.status}: ${error.message}${problems.join('')}`
}
