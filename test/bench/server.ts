/** A process that serves one of the apps. */
import { readConfig } from '../../server/config.ts'
import { type App, apps } from './apps.ts'
import { answer } from './child.ts'
import type { Environment } from './set-up.ts'

const calls = {
  /** Returns the URL. */
  start: (app: App, environment: Environment, accountId: string): Promise<string> =>
    apps[app](readConfig(environment), accountId),
  /** CPU time of this process with all its threads, in microseconds. */
  cpuMicros(): number {
    const { user, system } = process.cpuUsage()
    return user + system
  },
}

export type Server = typeof calls
answer(calls)
