import { AsyncLocalStorage } from 'node:async_hooks'

export const service = new AsyncLocalStorage<true>()

/** Runs `work`. The statements that it sends, now or later, are those of the service and not of a
 *  test: see test/statements.ts. */
export const asService = <T>(work: () => T): T => service.run(true, work)
