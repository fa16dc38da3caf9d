/** A process that runs only the delivery engine. */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Db, openDatabase } from '../../records/database/open.ts'
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { readConfig } from '../../server/config.ts'
import { newLogger } from '../../server/log.ts'
import { emit, emitMany } from '../../webhooks/emit.ts'
import { type Engine, startEngine } from '../../webhooks/engine/engine.ts'
import { serveCalls, sharedNowMs } from './child.ts'
import type { Environment } from './set-up.ts'

const POLL_MS = 5

setFlagsFromString('--expose-gc')
const collectGarbage: (options: object) => void = runInNewContext('gc')

export interface Progress {
  /** Deliveries that this process has stored as delivered. */
  count: number
  /** In milliseconds of the shared clock. */
  at: number
  /** CPU time of this process with all its threads. */
  cpuMicros: number
  /** Memory of this process. */
  rssBytes: number
  /** The number of slots in use. */
  inFlight: number
  isLeader: boolean
}

let engine: Engine
let db: Db
/** The start of each transaction by the ID of its record, in milliseconds of the shared clock. */
const emitted = new Map<string, number>()
let background: NodeJS.Timeout | undefined

function emitOne(accountId: string, id: string): Promise<void> {
  return transaction(db, (trx) =>
    emit(
      writeScope(trx, accountId),
      { eventType: 'participant.created', resourceId: id, data: [] },
      new Date(),
    ),
  )
}

const calls = {
  progress(): Progress {
    const { user, system } = process.cpuUsage()
    const { ended, inFlight } = engine.stats()
    return {
      count: ended.delivered,
      at: sharedNowMs(),
      cpuMicros: user + system,
      rssBytes: process.memoryUsage.rss(),
      inFlight,
      isLeader: engine.isLeader(),
    }
  },
  async start(environment: Environment, nameServers?: string[]): Promise<void> {
    const config = readConfig(environment)
    const databaseUrl = 'databaseUrl' in config.database ? config.database.databaseUrl : undefined
    db = openDatabase(config.database)
    const log = newLogger(config.logLevel)
    engine = await startEngine({ db, databaseUrl, config, log, nameServers })
  },
  /** Emits an event in each account at this interval, until the process ends. */
  emitInBackground(accounts: string[], everyMs: number): void {
    background = setInterval(() => {
      for (const accountId of accounts) void emitOne(accountId, randomUUID())
    }, everyMs)
  },
  endBackground: (): void => clearInterval(background),
  /** Emits events one by one in this process, like an API node with an engine. */
  async emit(accounts: string[], count: number, everyMs: number): Promise<void> {
    emitted.clear()
    for (let event = 0; event < count; event++) {
      const id = randomUUID()
      const accountId = accounts[event % accounts.length] ?? ''
      emitted.set(id, sharedNowMs())
      await emitOne(accountId, id)
      await delay(everyMs * (0.5 + Math.random()))
    }
  },
  /** Emits events in one transaction. */
  async emitTogether(accountId: string, count: number): Promise<void> {
    emitted.clear()
    const ids = Array.from({ length: count }, () => randomUUID())
    const startedAt = sharedNowMs()
    for (const id of ids) emitted.set(id, startedAt)
    const events = ids.map((resourceId) => ({
      eventType: 'participant.created' as const,
      resourceId,
      data: [] as [],
    }))
    await transaction(db, (trx) => emitMany(writeScope(trx, accountId), events, new Date()))
  },
  /** Those of the last `emit` or `emitTogether`. */
  emitted: (): Map<string, number> => emitted,
  /** The memory of this process in bytes after a garbage collection. */
  retainedBytes(): number {
    collectGarbage({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    return process.memoryUsage.rss()
  },
  /** Waits until `count` deliveries are stored as delivered. Throws after a time limit. */
  async delivered(count: number, withinMs: number): Promise<Progress> {
    const deadline = sharedNowMs() + withinMs
    while (engine.stats().ended.delivered < count) {
      if (sharedNowMs() > deadline)
        throw new Error(`Only ${engine.stats().ended.delivered} of ${count} were delivered in time`)
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
    return calls.progress()
  },
}

export type EngineProcess = typeof calls
serveCalls(calls)
