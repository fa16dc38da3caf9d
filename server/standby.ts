import type { Logger } from 'pino'
import type { Standby } from '../records/database/standby.ts'
import { type BackgroundWork, repeat } from '../runtime/run-loop.ts'

const CHECK_EVERY_MS = 1_000

/** Checks regularly whether the standby can be read. Logs a change once two checks agree. */
export function watchStandby(standby: Standby, log: Logger): BackgroundWork {
  let wasUsed: boolean | undefined
  let loggedUse: boolean | undefined
  const check = async (): Promise<void> => {
    await standby.check()
    const { problem } = standby
    const isUsed = problem === undefined
    if (isUsed === wasUsed && isUsed !== loggedUse) {
      loggedUse = isUsed
      if (isUsed) log.info('The console and exports read the standby of DATABASE_READ_URL')
      else
        log.warn(
          `The standby of DATABASE_READ_URL is not read: ${problem}. The console and exports read the primary.`,
        )
    }
    wasUsed = isUsed
  }
  const work = repeat(CHECK_EVERY_MS, check, (error) =>
    log.error({ err: error }, 'The standby could not be checked'),
  )
  work.wake()
  return work
}
