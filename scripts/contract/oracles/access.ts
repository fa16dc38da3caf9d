/** Oracle: an operation refuses requests without a valid API key, and keys without the permission
 *  that the operation needs. If it needs none, a Read Only key is enough. */
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import { readWord } from '../../words/read.ts'
import { assertStatus } from '../contract-broken.ts'
import type { Request } from '../request.ts'
import { assertSameStatus, type Check, newRequest, prepareRequest, type Run } from '../run.ts'

export async function* keyChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const { key, restrictedKey } = run.target
  const path = await run.records.sharedPath(operation)
  const request = await prepareRequest(run, operation, {}, path)
  const expect401 = (what: string, probe: Request): Check => ({
    what,
    async perform() {
      const { status } = await run.send(operation, probe)
      assertStatus(probe, status, { check: 'ignored_auth', expected: 401, what })
    },
  })
  yield expect401('without a key', { ...request, key: null })
  yield expect401('with another key', { ...request, key: changeKey(key) })
  const Authorization = `Basic ${btoa('user:password')}`
  const headers = { ...request.headers, Authorization }
  yield expect401('with a key of another scheme', { ...request, key: null, headers })
  yield* schemeChecks(run, operation, path)
  if (restrictedKey === undefined) return
  const needsPermission = operation.responses.some(({ status }) => status === 403)
  const what = needsPermission ? 'a key without the permission' : 'a Read Only key'
  yield {
    what: `with ${what}`,
    async perform() {
      const at = needsPermission ? await forbiddenPath(run, operation, path) : path
      const probe = { ...request, path: at, key: restrictedKey }
      const { status } = await run.send(operation, probe)
      assertStatus(probe, status, {
        check: 'ignored_permission',
        expected: needsPermission ? 403 : operation.success.status,
        what,
      })
    },
  }
}

/** RFC 9110 §11.1: the case of a scheme has no meaning. */
function* schemeChecks(run: Run, operation: Operation, path: string): Generator<Check> {
  // The service refuses the unknown parameter, so that the request changes nothing.
  const request = newRequest(run, operation, path, { query: { not_a_parameter: 1 } })
  for (const scheme of ['bearer', 'BEARER'])
    yield {
      what: `with the scheme ${scheme}`,
      perform: () =>
        assertSameStatus(
          run,
          operation,
          { usual: request, probe: { ...request, scheme } },
          { check: 'ignored_auth', what: `a key with the scheme ${scheme}` },
        ),
    }
}

/** Changes the last character of the key. */
function changeKey(key: string): string {
  return `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`
}

/** The path of a new record that only keys with the permission may access: it has the values of
 *  `x-forbidden-with`. Returns `path` if the operation has no `x-forbidden-with`: then every record
 *  needs the permission. */
async function forbiddenPath(run: Run, operation: Operation, path: string): Promise<string> {
  const values = readWord<JsonObject>(operation.place, 'x-forbidden-with')
  return values ? await run.records.newPath(operation, values) : path
}
