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
  /** Waits until so many deliveries are delivered and stored: how many then are, and when, in shared milliseconds. Throws when it takes too long. */
  async delivered(count: number, withinMs: number): Promise<{ count: number; at: number }> {
    const deadline = sharedNowMs() + withinMs
    while (engine.stats().ended.delivered < count) {
      if (sharedNowMs() > deadline) throw new Error(`Only ${engine.stats().ended.delivered} of ${count} were delivered in time`)
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
    return { count: engine.stats().ended.delivered, at: sharedNowMs() }
  },
}

export type EngineProcess = typeof calls
answer(calls)
