/** Pages of many records, which may have 4 MiB, take turns. So many of them at once do not delay all other requests of
 *  a process. */
import { Turns } from './turns.ts'

/** The default size of a page. */
const MAX_SMALL_PAGE = 25

export class LargePages {
  readonly #turns = new Turns(1)
  readonly #accounts = new Map<string, { turns: Turns; pages: number }>()

  /** Runs `build` at once for a small page or no page. One large page is built at a time, of each account in turn. */
  async take<T>(accountId: string, size: unknown, build: () => Promise<T>): Promise<T> {
    if (!(Number(size) > MAX_SMALL_PAGE)) return build()
    const account = this.#accounts.get(accountId) ?? { turns: new Turns(1), pages: 0 }
    this.#accounts.set(accountId, account)
    account.pages++
    try {
      return await account.turns.take(() => this.#turns.take(build))
    } finally {
      if (--account.pages === 0) this.#accounts.delete(accountId)
    }
  }
}
