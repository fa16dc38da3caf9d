/** Runs an operation for the HTTP API and the console: validate → scope → handler → check. */
import { type OperationId, operations } from '../generated/operations.ts'
import { type Caller, isFile, type ValidInput } from '../handlers/call.ts'
import { insertAuditEntry } from '../records/audit-log.ts'
import { findCompleteUntil } from '../records/complete-until.ts'
import type { Db } from '../records/database/open.ts'
import { accountTransaction, readScope, writeScope } from '../records/database/scope.ts'
import type { Sql } from '../records/database/statements.ts'
import { type Opening, transactionAfter } from '../records/database/transaction.ts'
import {
  findKeyState,
  insertIdempotencyKey,
  type KeyedRequest,
  type KeyState,
  lockOfKey,
  type StoredResponse,
} from '../records/idempotency-keys.ts'
import type { MergePatch } from '../records/merge-patch.ts'
import {
  findKeyAndSubscriptions,
  listSubscriptions,
  type Subscription,
} from '../records/subscriptions.ts'
import { findUser } from '../records/users.ts'
import { emitMany } from '../webhooks/emit.ts'
import type { Audit, WebhookConfig } from '../webhooks/webhook-changes.ts'
import type { AccountQuotas } from './account-quota.ts'
import { batchKindOf, toBatchResponse } from './batch.ts'
import { handle, newEmitters } from './handle.ts'
import { type KeysInUse, takeKey } from './idempotency.ts'
import { runItems } from './items.ts'
import { LargePages } from './large-pages.ts'
import type { ResponseChecker } from './response-check.ts'

interface ExecuteServices {
  db: Db
  now: () => Date
  checkResponse: ResponseChecker
  keysInUse: KeysInUse
  quotas: AccountQuotas
  config: WebhookConfig
}

interface Execution<Id extends OperationId> {
  input: ValidInput<Id>
  caller: Caller
  /** The IP address of the client. */
  ip: string
  /** Where an operation that changes nothing reads. The primary by default. */
  reader?: Sql
  requestId: string
  /** The client gets only the headers of the response. */
  isHead?: boolean
  /** The trace of the request. */
  traceparent?: string
  mergePatch?: MergePatch
  /** Throws 412 when this is not the version of the record that the client requires. */
  assertMatch?: (current: object) => void
  /** Only the first request with this key changes something. The others get the response of the
   *  first. */
  idempotency?: KeyedRequest
  /** Prepares the response to the client. Returns the copy that is stored with the idempotency
   *  key. */
  respond?: (result: unknown) => StoredResponse
}

/** The result of the handler, or the response to an earlier request with the same key. For an
 *  earlier response, `respond` is not called. */
type ExecutionResult =
  | { result: unknown; earlierResponse?: undefined }
  | { earlierResponse: StoredResponse }

/** Throws StatusError or InvalidInput. */
export async function execute<Id extends OperationId>(
  services: ExecuteServices,
  id: Id,
  execution: Execution<Id>,
): Promise<ExecutionResult> {
  if (operations[id].access === 'write')
    return services.keysInUse.use(execution.idempotency, () => change(services, id, execution))
  const { db, now } = services
  const { accountId } = execution.caller
  const scope = readScope(db, accountId, execution.reader)
  if (!execution.reader) scope.findCompleteUntil = () => findCompleteUntil(db, now)
  const query: Record<string, unknown> = execution.input.query
  return largePages.run(accountId, query['page[size]'], async () => {
    const audit = newAudit(execution, now())
    const result = await handleAndCheck(services, id, execution, {
      scope,
      now: now(),
      async auditDownload(target, details) {
        if (execution.isHead) return
        await accountTransaction(db, accountId, (change) =>
          audit(change, `${target.type}.downloaded`, target, details),
        )
      },
    })
    // A read has no idempotency key, so the copy that `respond` returns is not stored.
    execution.respond?.(result)
    return { result }
  })
}

/** Large pages are read one at a time in the whole process, because all requests share its event
 *  loop. */
const largePages = new LargePages()

/** Runs the operation in one transaction. On PostgreSQL a create that reads no record takes two
 *  round trips, one with BEGIN and one with COMMIT: the inserts of the steps 2 to 4 are only
 *  collected, and sent with COMMIT. */
async function change<Id extends OperationId>(
  services: ExecuteServices,
  id: Id,
  execution: Execution<Id>,
): Promise<ExecutionResult> {
  const { caller, traceparent, ip, requestId, idempotency, respond } = execution
  const quota = await services.quotas.of(caller.accountId)
  const kind = batchKindOf(operations[id])
  const share = quota.newShare()
  const outcome: ExecutionResult = await transactionAfter(
    services.db,
    // 1. With BEGIN: the state of the key, and the webhooks that want the event.
    opening(id, execution, services.now()),
    async (trx, { key, subscriptions }) => {
      const earlierResponse = idempotency && key && (await takeKey(trx, idempotency, key))
      if (earlierResponse) return { earlierResponse }
      const now = services.now()
      // Another run of the transaction, which was rolled back, may have taken a part.
      share.release()
      if (!kind) share.take(operations[id], now)
      const scope = writeScope(trx, caller.accountId, {
        traceparent,
        actor: caller,
        origin: { ip, requestId },
        subscriptions,
      })
      // 2. The record, its events and their deliveries.
      const itemContext = { scope, caller, now, share, quotas: quota.limits }
      const result = await handleAndCheck(services, id, execution, {
        ...itemContext,
        audit: newAudit(execution, now),
        ...newEmitters((events) => emitMany(scope, events, now)),
        runBatch:
          kind &&
          (async (body) =>
            toBatchResponse(await runItems({ ...itemContext, kind }, body.items), body)),
      })
      // 3. The response, before the commit: one that breaks the contract rolls the change back.
      const response = respond?.(result)
      // 4. The key with the response.
      if (idempotency && response)
        await insertIdempotencyKey(trx, idempotency, response, now.getTime())
      return { result }
    },
  ).catch((error: unknown) => {
    share.release()
    throw error
  })
  // 5. The commit has announced the deliveries, which starts them: see transaction.ts.
  if (outcome.earlierResponse) share.release()
  return outcome
}

/** A create reads the webhooks with BEGIN, so that a create that reads nothing else needs no more
 *  round trips. Other changes read their record first, and the webhooks when they emit events. */
function opening<Id extends OperationId>(
  id: Id,
  { caller, idempotency }: Execution<Id>,
  now: Date,
): Opening<{ key?: KeyState; subscriptions?: Subscription[] }> {
  const isCreate = operations[id].success === 201
  return {
    isIdentified: isCreate,
    lock: idempotency && lockOfKey(idempotency),
    async read(source) {
      if (!isCreate)
        return { key: idempotency && (await findKeyState(source, idempotency, now.getTime())) }
      if (!idempotency)
        return { subscriptions: await listSubscriptions(source.sql, caller.accountId) }
      return findKeyAndSubscriptions(source, idempotency, now.getTime())
    },
  }
}

/** Calls the handler and checks its result against the contract. */
async function handleAndCheck<Id extends OperationId>(
  { checkResponse, config }: ExecuteServices,
  id: Id,
  { input, caller, mergePatch, assertMatch, requestId }: Execution<Id>,
  context: Parameters<typeof handle>[2],
): Promise<unknown> {
  const result = await handle(
    id,
    { input, caller, mergePatch, assertMatch },
    { ...context, config },
  )
  if (!isFile(result))
    checkResponse(id, { status: operations[id].success, body: result }, requestId)
  return result
}

function newAudit(
  { caller, ip, requestId }: Pick<Execution<OperationId>, 'caller' | 'ip' | 'requestId'>,
  now: Date,
): Audit {
  return async (scope, action, target, details) => {
    const user = await findUser(scope, caller.userId)
    if (!user) throw new Error(`User ${caller.userId} was deleted`)
    const apiKeyId = caller.apiKey?.id
    const entry = { user, apiKeyId, action, target, details, ip, requestId }
    await insertAuditEntry(scope, entry, now)
  }
}
