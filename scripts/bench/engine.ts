/** A process that runs the delivery engine and nothing else. */
import { openDatabase } from '../../records/db.ts'
import { readConfig } from '../../server/config.ts'
import { newLogger } from '../../server/log.ts'
import { type Engine, startEngine } from '../../webhooks/engine.ts'
import { answer, sharedNowMs } from './child.ts'
import type { Environment } from './set-up.ts'

const LOOK_MS = 5

let engine: Engine

const calls = {
  async start(environment: Environment): Promise<void> {
    const config = readConfig(environment)
    const databaseUrl = 'databaseUrl' in config.database ? config.database.databaseUrl : undefined
    engine = await startEngine({ db: openDatabase(config.database), databaseUrl, config, log: newLogger(config.logLevel) })
  },
  /** When so many deliveries were delivered and stored, in shared milliseconds. Throws when that takes too long. */
  async delivered(count: number, withinMs: number): Promise<number> {
    const deadline = sharedNowMs() + withinMs
    while (engine.stats().ended.delivered < count) {
      if (sharedNowMs() > deadline) throw new Error(`Only ${engine.stats().ended.delivered} of ${count} were delivered in time`)
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
    return sharedNowMs()
  },
}

export type EngineProcess = typeof calls
answer(calls)
