/** Runs the handlers of a folder that `muster init` created. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Refused, StatusError } from '../../errors.ts'
import type { Credentials } from './credentials.ts'
import type { Call, Result } from './service.ts'

type Handler = (call: object) => Promise<Result>
/** Returns the caller for the handlers. Undefined: the credentials are not valid.
 *  `NOT_IMPLEMENTED`: security.ts does not verify credentials yet. */
type Verify = (credentials: Credentials) => Promise<unknown>

const NOT_IMPLEMENTED = 501

/** Throws `Refused` if the folder has no generated handlers. */
export async function loadHandlers(root: string): Promise<(call: Call) => Promise<Result>> {
  const index = join(root, 'generated/handlers.ts')
  if (!existsSync(index))
    throw new Refused(`${index} does not exist: run "muster generate --root ${root}".`)
  const { handlers } = (await import(pathToFileURL(index).href)) as {
    handlers: Record<string, () => Promise<Handler>>
  }
  const verify = await loadVerify(root)
  return async ({ operation, credentials, request: _request, ...call }) => {
    const caller = await findCaller(verify, credentials)
    const load = handlers[operation.id]
    if (!load)
      throw new Error(
        `generated/handlers.ts has no ${operation.id}: run "muster generate --root ${root}"`,
      )
    const handle = await load()
    return await handle({ ...call, caller })
  }
}

/** Undefined: the request has no credentials, and the operation allows that. Throws `StatusError`
 *  401 for credentials that are not valid, and 501 if security.ts does not verify any yet. */
async function findCaller(verify: Verify, credentials: Credentials): Promise<unknown> {
  if (Object.keys(credentials).length === 0) return undefined
  const verified = await verify(credentials)
  if (verified === NOT_IMPLEMENTED)
    throw new StatusError(NOT_IMPLEMENTED, 'security.ts does not verify credentials yet.')
  if (verified === undefined) throw new StatusError(401, 'The credentials are not valid.')
  return verified
}

async function loadVerify(root: string): Promise<Verify> {
  const file = join(root, 'security.ts')
  if (!existsSync(file)) return async () => NOT_IMPLEMENTED
  const { verify } = (await import(pathToFileURL(file).href)) as { verify: Verify }
  return verify
}
