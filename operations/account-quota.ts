/** Keeps accounts within their quotas of records and of events a day. */
import { InvalidInput, StatusError } from '../errors.ts'
import type { OperationRow } from '../generated/operations.ts'
import type { Db } from '../records/database/open.ts'
import { readScope } from '../records/database/scope.ts'
import {
  countWriteUse,
  endOfDay,
  findQuotas,
  type Quotas,
  type WriteUse,
} from '../records/quotas.ts'
import { countNoun } from '../records/references.ts'

const MAX_AGE_MS = 60_000
/** Limits the memory: when this many accounts are cached, the next account clears the cache. */
const MAX_ACCOUNTS = 10_000
const CREATED = 201

interface QuotaServices {
  db: Db
  now: () => Date
  /** The default quotas: an operator can set others for an account. */
  quotas: Quotas
}

/** Counts the changes of each account in memory, and reads the counts from the database once a
 *  minute, so that checking a change needs no statement. Several nodes together can exceed a
 *  quota by what they add within a minute. */
export class AccountQuotas {
  readonly #services: QuotaServices
  readonly #accounts = new Map<string, { quota: Promise<AccountQuota>; readAt: number }>()

  constructor(services: QuotaServices) {
    this.#services = services
  }

  /** Call it outside of a transaction: it can read the database on another connection. */
  of(accountId: string): Promise<AccountQuota> {
    const at = this.#services.now().getTime()
    const cached = this.#accounts.get(accountId)
    if (cached && Math.abs(at - cached.readAt) < MAX_AGE_MS) return cached.quota
    if (this.#accounts.size >= MAX_ACCOUNTS) this.#accounts.clear()
    const quota = this.#read(accountId)
    this.#accounts.set(accountId, { quota, readAt: at })
    quota.catch(() => this.#accounts.delete(accountId))
    return quota
  }

  async #read(accountId: string): Promise<AccountQuota> {
    const { db, now, quotas } = this.#services
    const scope = readScope(db, accountId)
    const [limits, use] = await Promise.all([
      findQuotas(scope, quotas),
      countWriteUse(scope, now()),
    ])
    return new AccountQuota(limits, use)
  }
}

/** The part of an account's quotas that the changes of one transaction take. */
export interface QuotaShare {
  /** How many changes have taken a part. */
  readonly size: number
  /** Takes the part of one change. Throws `InvalidInput` when the quota of records is used up, and 429
   *  when that of events is. */
  take(operation: OperationRow, now: Date): void
  /** Gives back all but the first `size` parts, because their changes were not committed. */
  release(size?: number): void
}

class AccountQuota {
  readonly limits: Quotas
  readonly #use: WriteUse

  constructor(limits: Quotas, use: WriteUse) {
    this.limits = limits
    this.#use = use
  }

  /** The share of one transaction. It counts before the commit, so that concurrent changes cannot
   *  exceed a quota together. A change counts as one event until the next read of the database,
   *  which counts all its events. A change that emits nothing, such as that of a webhook, needs no
   *  share. */
  newShare(): QuotaShare {
    const taken: OperationRow[] = []
    return {
      get size() {
        return taken.length
      },
      take: (operation, now) => {
        this.#assertWithin(operation, now)
        this.#count(operation, 1)
        taken.push(operation)
      },
      release: (size = 0) => {
        for (const operation of taken.splice(size)) this.#count(operation, -1)
      },
    }
  }

  #assertWithin({ success, emits }: OperationRow, now: Date): void {
    if (emits.length === 0) return
    const { records, events_per_day } = this.limits
    if (success === CREATED && this.#use.records >= records)
      throw new InvalidInput({
        records: [
          `Your account may have ${countNoun(records, 'record')}. ` +
            'Delete some, or ask the operator of this service for a larger quota.',
        ],
      })
    if (this.#use.events_per_day < events_per_day) return
    const seconds = Math.ceil((endOfDay(now).getTime() - now.getTime()) / 1_000)
    throw new StatusError(
      429,
      `Your account may cause ${countNoun(events_per_day, 'event')} a day. The next day begins at ` +
        'midnight UTC. The operator of this service can give you a larger quota.',
      { 'Retry-After': String(seconds) },
    )
  }

  #count({ success, emits }: OperationRow, changes: 1 | -1): void {
    if (emits.length === 0) return
    if (success === CREATED) this.#use.records += changes
    this.#use.events_per_day += changes
  }
}
