import { InvalidInput, StatusError } from '../errors.ts'
import type { AccountQuotas } from '../operations/account-quota.ts'
import { discardUpload, storeUpload } from '../operations/upload.ts'
import type { Db } from '../records/database/open.ts'
import type { Context } from './context.ts'

type Stored = Awaited<ReturnType<typeof storeUpload>>

/** Stores the file of the request, and calls `run` with it. Discards the file when no import has it. */
export async function withUpload(
  services: { db: Db; quotas: AccountQuotas },
  ctx: Context,
  { accountId, mediaType }: { accountId: string; mediaType: string },
  run: (upload: Stored) => Promise<{ isReplay: boolean }>,
): Promise<void> {
  const upload = await storeUpload(services, accountId, { mediaType, content: read(ctx) })
  const discard = (): Promise<void> => discardUpload(services.db, accountId, upload.id)
  try {
    const { isReplay } = await run(upload)
    if (isReplay) await discard()
  } catch (error) {
    // After another error, the import may have been committed.
    if (error instanceof InvalidInput || error instanceof StatusError) await discard()
    throw error
  }
}

/** Throws 400 when the file is truncated. The request log gets the beginning of the file. */
async function* read(ctx: Context): AsyncGenerator<Buffer> {
  try {
    // An error response must still reach the client, so the connection stays open.
    for await (const bytes of ctx.req.iterator({ destroyOnReturn: false })) {
      ctx.state.requestText ??= (bytes as Buffer).toString()
      yield bytes as Buffer
    }
  } catch {
    ctx.throw(400, 'The request body was truncated.')
  }
}
