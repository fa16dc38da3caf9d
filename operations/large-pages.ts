/** Large pages, of up to 4 MiB, take turns, so that many of them at once do not delay all other
 *  requests of a process. */
import { setTimeout as delay } from 'node:timers/promises'
import { Turns } from '../runtime/turns.ts'

/** The most records of a small page. It is the default page size. */
const MAX_SMALL_PAGE = 25
/** The longest pause after a page. If the work on the page takes longer than this, most of the time
 *  is a wait for the database, which leaves the event loop free. */
const MAX_PAUSE_MS = 200

export class LargePages {
  readonly #turns = new Turns(1)
  readonly #accounts = new Map<string, { turns: Turns; pages: number }>()

  /** Runs `build` at once unless it builds a large page. Builds one large page at a time. Accounts
   *  take turns. */
  async run<T>(accountId: string, size: unknown, build: () => Promise<T>): Promise<T> {
    const isLarge = Number(size) > MAX_SMALL_PAGE
    if (!isLarge) return build()
    const account = this.#accounts.get(accountId) ?? { turns: new Turns(1), pages: 0 }
    this.#accounts.set(accountId, account)
    account.pages++
    try {
      return await account.turns.take(() => this.#build(build))
    } finally {
      if (--account.pages === 0) this.#accounts.delete(accountId)
    }
  }

  /** A turn ends with a pause that lasts as long as the work on the page, so that large pages take
   *  at most half of the time of the event loop. The caller gets the page before the pause. */
  #build<T>(build: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      void this.#turns.take(async () => {
        const startedAt = performance.now()
        await build().then(resolve, reject)
        await delay(Math.min(performance.now() - startedAt, MAX_PAUSE_MS))
      })
    })
  }
}
