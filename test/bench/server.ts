/** A process that serves one of the apps. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { readConfig } from '../../server/config.ts'
import { type App, apps } from './apps.ts'
import { serveCalls } from './child.ts'
import type { Environment } from './set-up.ts'

const delays = monitorEventLoopDelay({ resolution: 1 })
let cpuWatch: CpuWatch | undefined

interface CpuWatch {
  /** Returns the most CPU time of this thread in one turn of the event loop, in milliseconds. */
  stop(): number
}

function watchCpuOfTurns(): CpuWatch {
  let mostMicros = 0
  let before = process.threadCpuUsage()
  const endTurn = (): void => {
    const { user, system } = process.threadCpuUsage(before)
    mostMicros = Math.max(mostMicros, user + system)
    before = process.threadCpuUsage()
    next = setImmediate(endTurn)
  }
  let next = setImmediate(endTurn)
  return {
    stop() {
      clearImmediate(next)
      return mostMicros / 1e3
    },
  }
}

const calls = {
  /** Returns the URL. */
  start: (app: App, environment: Environment, accountId: string): Promise<string> =>
    apps[app](readConfig(environment), accountId),
  /** CPU time of this process with all its threads, in microseconds. */
  cpuMicros(): number {
    const { user, system } = process.cpuUsage()
    return user + system
  },
  watchTurns(): void {
    delays.reset()
    delays.enable()
    cpuWatch = watchCpuOfTurns()
  },
  /** The longest turn of the event loop since `watchTurns`, in milliseconds. Its duration, to which
   *  other programs of the machine add, or its CPU time: the lower of the two. */
  longestTurnMs(): number {
    delays.disable()
    return Math.min(delays.max / 1e6, cpuWatch?.stop() ?? 0)
  },
}

export type Server = typeof calls
serveCalls(calls)
