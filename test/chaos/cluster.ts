/** The installation under test: its database, its `muster serve` processes, an account and
 *  webhooks. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Db, openDatabase } from '../../records/database/open.ts'
import { type WriteScope, writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { insertWebhook } from '../../records/webhooks.ts'
import { type Config, readConfig } from '../../server/config.ts'
import { newSecret, sealSecret } from '../../webhooks/transport/secret.ts'
import { type DatabaseKind, type Environment, newAccount, withRecords } from '../bench/set-up.ts'
import { type FakeClock, faketime, newFakeClock } from '../faketime.ts'
import { startPostgres, type TestPostgres } from '../postgres.ts'
import { type Disk, openDisk } from './disk.ts'

const BIN = fileURLToPath(new URL('../../bin/muster.js', import.meta.url))
const READY_WITHIN_MS = 60_000
const RESPAWN_MS = 250
const LOG_TAIL = 2_000
const WRONG_SECRET_KEY = 'a secret key that fits no database of chaos'
const WRONG_KEY_SENTENCE = 'SECRET_KEY is not the key that encrypted'

export const NODE_SETTINGS = {
  PORT: '0',
  LOG_LEVEL: 'warn',
  DRAIN_MS: '0',
  RATE_LIMIT_PER_MINUTE: '1000000000',
  REQUESTS_IN_FLIGHT_PER_USER: '1000000',
  WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
  SECRET_KEY: 'a secret key for nothing but chaos',
}

export type Role = Config['role']

export interface Node {
  name: string
  role: Role
  /** Undefined where libfaketime is not installed. */
  clock?: FakeClock
  /** The URL of the last process that was ready. */
  url: string
  /** The last process has it. */
  pid: number
  /** The lines of the log so far. */
  readLog(): LogLine[]
  /** When the process was spawned and when it was ready. Epoch milliseconds. */
  spawnedAt: number
  readyAt: number
  /** Whether the node was down or frozen at any time after `since`, in epoch milliseconds. */
  wasUnhealthySince(since: number): boolean
  /** Resolves when the node is ready. A process that exits before is started again, but not at the
   *  first start of the node, which throws. */
  start(): Promise<void>
  /** Starts the node with another SECRET_KEY. Resolves to whether the node refuses the key. */
  tryWrongKey(): Promise<boolean>
  /** SIGKILL. */
  kill(): Promise<void>
  /** SIGSTOP and SIGCONT. */
  freeze(): void
  thaw(): void
  /** SIGTERM. Returns the exit status. */
  stop(): Promise<number | null>
}

export interface LogLine extends Record<string, unknown> {
  level: string
  msg: string
}

export interface Cluster extends AsyncDisposable {
  kind: DatabaseKind
  /** Undefined on SQLite. */
  postgres?: TestPostgres
  /** Has the files of the database. Undefined where no file system can be mounted. */
  disk?: Disk
  /** Connections of the test itself. */
  db: Db
  /** A key of the Account Owner. */
  token: string
  nodes: Node[]
  /** Returns the ID of the webhook. */
  addWebhook(url: string, eventTypes: string[]): Promise<string>
  /** Returns a ready node. */
  addNode(name: string, role: Role): Promise<Node>
  /** The folder of the log files. `keepLogs` keeps it. */
  directory: string
  keepLogs(): void
}

export interface ClusterOptions {
  kind: DatabaseKind
  /** Settings of the nodes. */
  environment?: Environment
}

export async function openCluster(options: ClusterOptions): Promise<Cluster> {
  const { kind } = options
  const directory = await mkdtemp(join(tmpdir(), 'muster-chaos-'))
  // PostgreSQL runs as another user.
  await chmod(directory, 0o755)
  const disk = openDisk(join(directory, 'disk'))
  const folder = disk?.folder ?? directory
  const postgres = kind === 'postgres' ? await startPostgres({ folder }) : undefined
  const databaseSettings: Environment = postgres
    ? { DATABASE_URL: await postgres.createDatabase() }
    : { DATA_DIR: join(folder, 'data') }
  const environment = { ...NODE_SETTINGS, ...databaseSettings, ...options.environment }
  const { accountId, token } = await withRecords(environment, async (trx) => {
    const { scope, token } = await newAccount(trx)
    return { accountId: scope.accountId, token }
  })
  const config = readConfig(environment)
  const db = openDatabase(config.database)
  const nodes: Node[] = []
  let keepsLogs = false
  return {
    kind,
    postgres,
    disk,
    db,
    token,
    nodes,
    directory,
    addWebhook: (url, eventTypes) =>
      transaction(db, (trx) => addWebhook(writeScope(trx, accountId), url, eventTypes, config)),
    async addNode(name, role) {
      const clock = faketime === undefined ? undefined : await newFakeClock()
      const node = newNode(name, role, {
        environment: { ...environment, ...clock?.environment },
        clock,
        logFile: join(directory, `${name}.log`),
      })
      nodes.push(node)
      await node.start()
      return node
    },
    keepLogs() {
      keepsLogs = true
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(nodes.map((node) => node.kill()))
      for (const { clock } of nodes) await clock?.[Symbol.asyncDispose]()
      await db.close()
      await postgres?.stop()
      disk?.[Symbol.dispose]()
      if (!keepsLogs) await rm(directory, { recursive: true, force: true })
    },
  }
}

export async function addWebhook(
  scope: WriteScope,
  url: string,
  eventTypes: string[],
  { secretKeys }: Config,
): Promise<string> {
  const webhook = { url, description: '', eventTypes, createdBy: null }
  const { id } = await insertWebhook(
    scope,
    webhook,
    (id) => sealSecret(secretKeys.newest(), id, newSecret()),
    new Date(),
  )
  return id
}

export interface NodeOptions {
  environment: Environment
  clock?: FakeClock
  logFile: string
}

export function newNode(
  name: string,
  role: Role,
  { environment, clock, logFile }: NodeOptions,
): Node {
  let process: ChildProcess | undefined
  /** When the node last became healthy. Undefined while it is not. */
  let healthySince: number | undefined
  const isRunning = (): boolean =>
    process !== undefined && process.exitCode === null && process.signalCode === null

  async function end(signal: NodeJS.Signals): Promise<number | null> {
    healthySince = undefined
    if (!process || !isRunning()) return process?.exitCode ?? null
    const exited = once(process, 'exit')
    process.kill(signal)
    await exited
    return process.exitCode
  }

  /** False when the node exited before it was ready. */
  async function spawnOnce(deadline: number, settings: Environment = {}): Promise<boolean> {
    node.spawnedAt = Date.now()
    process = spawnServe({ ...environment, ROLE: role, ...settings }, logFile)
    let output = ''
    process.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
    while (!output.includes('\n')) {
      if (!isRunning()) return false
      if (Date.now() > deadline) throw notReady()
      await delay(5)
    }
    node.url = (JSON.parse(output) as { url: string }).url
    node.readyAt = healthySince = Date.now()
    node.pid = process.pid ?? 0
    return true
  }

  const notReady = (): Error =>
    new Error(`${name} does not become ready:\n${readFileSync(logFile, 'utf8').slice(-LOG_TAIL)}`)

  const node: Node = {
    name,
    role,
    clock,
    url: '',
    pid: 0,
    readLog: () =>
      readFileSync(logFile, 'utf8')
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as LogLine),
    spawnedAt: 0,
    readyAt: 0,
    wasUnhealthySince: (since) =>
      healthySince === undefined || healthySince >= since || !isRunning(),
    async start() {
      const deadline = Date.now() + READY_WITHIN_MS
      while (!(await spawnOnce(deadline))) {
        if (node.readyAt === 0) throw notReady()
        await delay(RESPAWN_MS)
      }
    },
    async tryWrongKey() {
      const deadline = Date.now() + READY_WITHIN_MS
      const { length } = readFileSync(logFile)
      while (Date.now() < deadline) {
        if (await spawnOnce(deadline, { SECRET_KEY: WRONG_SECRET_KEY })) return false
        if (process?.exitCode !== 1) return false
        // Another fault may have ended the process before it checked the key.
        if (readFileSync(logFile).subarray(length).includes(WRONG_KEY_SENTENCE)) return true
        await delay(RESPAWN_MS)
      }
      throw notReady()
    },
    kill: async () => void (await end('SIGKILL')),
    freeze() {
      healthySince = undefined
      process?.kill('SIGSTOP')
    },
    thaw() {
      process?.kill('SIGCONT')
      healthySince = Date.now()
    },
    stop: () => end('SIGTERM'),
  }
  return node
}

function spawnServe(environment: Environment, logFile: string): ChildProcess {
  const log = openSync(logFile, 'a')
  const child = spawn(process.execPath, [BIN, 'serve', '--json'], {
    env: environment,
    stdio: ['ignore', 'pipe', log],
  })
  closeSync(log)
  // When this process exits, it leaves no server behind, not even a frozen one.
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  child.once('exit', () => process.off('exit', kill))
  return child
}
