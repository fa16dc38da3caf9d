/** Oracle: If-Match and If-None-Match compare versions as RFC 9110 §13.1 says. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Operation } from '../../model/operations.ts'
import { assertStatus } from '../contract-broken.ts'
import type { Request } from '../request.ts'
import { type Check, MAX_TRIES, newRequest, preparePath, RETRY_DELAY_MS, type Run } from '../run.ts'

const OTHER_TAG = '"another"'

interface Condition {
  what: string
  /** Returns the value of the header. `tag` is the record's current tag. */
  header(tag: string): string
  isMatch: boolean
  /** The condition matches only for If-None-Match, which compares weakly. If-Match compares strongly. */
  isWeak?: boolean
}

/** Those that do not match come first: a matching one may change the record. */
const CONDITIONS: Condition[] = [
  { what: 'another version', header: () => OTHER_TAG, isMatch: false },
  { what: 'a list of other versions', header: () => `${OTHER_TAG}, "third"`, isMatch: false },
  { what: 'the weak tag of the version', header: (tag) => `W/${tag}`, isMatch: true, isWeak: true },
  { what: 'the current version', header: (tag) => tag, isMatch: true },
  { what: 'a list with the version', header: (tag) => `${OTHER_TAG}, ${tag}`, isMatch: true },
  { what: 'any version', header: () => '*', isMatch: true },
]

export async function* conditionChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const isRead = operation.method === 'get'
  const name = isRead ? 'If-None-Match' : 'If-Match'
  const matched = isRead ? 304 : operation.success.status
  const unmatched = isRead ? operation.success.status : 412
  // Each deletion needs a record of its own. Other operations use one record for all checks.
  const commonPath = operation.method === 'delete' ? undefined : await preparePath(run, operation)
  for (const { what, header, isMatch, isWeak = false } of CONDITIONS)
    yield {
      what: `${name}: ${what}`,
      async perform() {
        const path = commonPath ?? (await preparePath(run, operation))
        const { probe, status } = await sendCondition(run, operation, path, (tag) => ({
          [name]: header(tag),
        }))
        assertStatus(probe, status, {
          check: 'conditional_request',
          expected: isMatch && (isRead || !isWeak) ? matched : unmatched,
          what: `${name}: ${what}`,
        })
        run.tested(operation.id, 'header etag', 'ETag')
      },
    }
}

/** Reads the current tag and sends the headers for it. Tries again if something else changed the
 *  record meanwhile. */
async function sendCondition(
  run: Run,
  operation: Operation,
  path: string,
  headersFor: (tag: string) => Record<string, string>,
): Promise<{ probe: Request; status: number }> {
  const body = await run.records.validBody(operation)
  const readTag = async (): Promise<string> => {
    const request = { method: 'GET', path, headers: {}, key: run.target.key }
    const { headers } = await run.sendUnchecked(request)
    return headers.get('etag') ?? ''
  }
  for (let tries = 1; ; tries += 1) {
    const tag = await readTag()
    const probe = newRequest(run, operation, path, { headers: headersFor(tag), body })
    const { status } = await run.send(operation, probe)
    // A successful write changes the tag, so a new tag does not show another change.
    const isWritten = operation.method !== 'get' && status === operation.success.status
    if (isWritten || (await readTag()) === tag || tries === MAX_TRIES) return { probe, status }
    await delay(RETRY_DELAY_MS)
  }
}
