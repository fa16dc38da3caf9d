/** Three PostgreSQL under Patroni, etcd and HAProxy on loopback, configured by deploy/cluster/. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import yaml from 'js-yaml'
import pg from 'pg'
import { freePort, NOBODY } from '../postgres.ts'
import { type Link, startLink } from './link.ts'
import type { Programs } from './programs.ts'

export interface Member {
  name: string
  /** Of Patroni's REST API. */
  restPort: number
  /** The way to PostgreSQL, for HAProxy, nodes and standbys. */
  link: Link
  /** Patroni's way to etcd. */
  etcdLink: Link
  start(): void
  /** To Patroni and PostgreSQL. */
  signal(signal: NodeJS.Signals): void
  signalPostgres(signal: NodeJS.Signals): void
}

export interface Servers extends AsyncDisposable {
  members: Member[]
  etcd: Program
  haproxy: Program
  /** Between the nodes and HAProxy. */
  haproxyLink: Link
  /** The database through HAProxy and with all hosts, and the standbys through HAProxy. */
  urls: { proxy: string; hosts: string; standbys: string }
  /** Undefined while there is none. */
  findLeader(): Promise<Member | undefined>
  isPrimary(member: Member): Promise<boolean>
  /** The synchronous standby of the leader. */
  findSynchronous(leader: Member): Promise<Member | undefined>
  /** Waits until a primary has two standbys that stream, one of them synchronous. */
  untilHealthy(): Promise<void>
  switchover(): Promise<void>
}

export interface Program {
  start(): void
  signal(signal: NodeJS.Signals): void
}

const RECIPE = new URL('../../deploy/cluster/', import.meta.url)
const NAMES = ['pg1', 'pg2', 'pg3']
const HEALTHY_WITHIN_MS = 120_000
const POLL_MS = 200
const PASSWORD = 'change-me'
const isRoot = process.getuid?.() === 0
const run = promisify(execFile)

export async function startServers(programs: Programs, folder: string): Promise<Servers> {
  const stopping = new AsyncDisposableStack()
  const home = newFolder(folder, 'home')
  const launchedPrograms: Program[] = []
  const launch = (name: string, program: string, args: string[]): Program => {
    const launched = newProgram(program, args, { home, log: join(folder, `${name}.log`), programs })
    stopping.defer(launched.end)
    launchedPrograms.push(launched)
    return launched
  }
  const [etcdPort, peerPort] = [await freePort(), await freePort()]
  const etcd = launch(
    'etcd',
    programs.etcd,
    etcdArguments(newFolder(folder, 'etcd'), etcdPort, peerPort),
  )
  etcd.start()
  const members: Member[] = []
  for (const name of NAMES) {
    const [restPort, postgresPort] = [await freePort(), await freePort()]
    const link = stopping.use(await startLink(await freePort(), postgresPort))
    const etcdLink = stopping.use(await startLink(await freePort(), etcdPort))
    const data = join(newFolder(folder, name), 'data')
    const file = join(folder, `${name}.yaml`)
    const ports = { rest: restPort, postgres: postgresPort, link: link.port, etcd: etcdLink.port }
    writeFileSync(file, patroniConfiguration(name, ports, join(folder, name), programs.postgres))
    const patroni = launch(name, programs.patroni, [file])
    const signalPostgres = (signal: NodeJS.Signals): void => signalAll(postgresIds(data), signal)
    const member: Member = {
      name,
      restPort,
      link,
      etcdLink,
      start: patroni.start,
      signalPostgres,
      signal(signal) {
        // Patroni first: it would restart PostgreSQL.
        patroni.signal(signal)
        signalPostgres(signal)
      },
    }
    stopping.defer(() => member.signal('SIGKILL'))
    members.push(member)
    member.start()
  }
  // A run that ends without disposal must not leave programs.
  process.once('exit', () => {
    for (const each of [...launchedPrograms, ...members]) each.signal('SIGKILL')
  })
  const [haproxyPort, standbysPort] = [await freePort(), await freePort()]
  const haproxyFile = join(folder, 'haproxy.cfg')
  writeFileSync(haproxyFile, haproxyConfiguration(haproxyPort, standbysPort, members))
  const haproxy = launch('haproxy', programs.haproxy, ['-f', haproxyFile, '-db'])
  haproxy.start()
  const haproxyLink = stopping.use(await startLink(await freePort(), haproxyPort))
  const findLeader = () => findLeaderOf(members)
  const hosts = members.map(({ link }) => `127.0.0.1:${link.port}`).join(',')
  const servers: Servers = {
    members,
    etcd,
    haproxy,
    haproxyLink,
    urls: {
      proxy: `postgres://muster:${PASSWORD}@127.0.0.1:${haproxyLink.port}/muster`,
      hosts: `postgres://muster:${PASSWORD}@${hosts}/muster?target_session_attrs=read-write`,
      standbys: `postgres://muster:${PASSWORD}@127.0.0.1:${standbysPort}/muster`,
    },
    findLeader,
    isPrimary,
    async findSynchronous(leader) {
      const { members: states = [] } = (await findStates(leader)) ?? {}
      const found = states.find(({ role }) => role === 'sync_standby')
      return members.find(({ name }) => name === found?.name)
    },
    untilHealthy: () => untilHealthy(members),
    async switchover() {
      const leader = await findLeader()
      const args = ['-c', join(folder, 'pg1.yaml'), 'switchover', 'muster', '--force']
      if (leader) args.push('--leader', leader.name)
      await run(programs.patronictl, args, { env: { ...process.env, HOME: home } })
    },
    [Symbol.asyncDispose]: () => stopping.disposeAsync(),
  }
  try {
    await servers.untilHealthy()
    await createDatabase(await findLeader())
  } catch (error) {
    await stopping.disposeAsync()
    throw error
  }
  return servers
}

export function newFolder(folder: string, name: string): string {
  const path = join(folder, name)
  mkdirSync(path, { mode: 0o700 })
  if (isRoot) chownSync(path, NOBODY, NOBODY)
  return path
}

function etcdArguments(data: string, port: number, peerPort: number): string[] {
  const url = `http://127.0.0.1:${port}`
  const peerUrl = `http://127.0.0.1:${peerPort}`
  return [
    ...['--data-dir', data, '--listen-client-urls', url, '--advertise-client-urls', url],
    ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
    ...['--initial-cluster', `default=${peerUrl}`],
  ]
}

interface Ports {
  rest: number
  postgres: number
  link: number
  etcd: number
}

/** The recipe with other IP addresses, ports and folders. */
function patroniConfiguration(name: string, ports: Ports, folder: string, bin: string): string {
  const text = readFileSync(new URL('patroni.yaml', RECIPE), 'utf8')
  const recipe = yaml.load(text.replaceAll('10.0.0.0/24', '127.0.0.1/32')) as {
    restapi: object
    postgresql: { parameters: object }
  }
  const at = (port: number): string => `127.0.0.1:${port}`
  return yaml.dump({
    ...recipe,
    name,
    restapi: { listen: at(ports.rest), connect_address: at(ports.rest) },
    etcd3: { hosts: [at(ports.etcd)] },
    postgresql: {
      ...recipe.postgresql,
      listen: at(ports.postgres),
      connect_address: at(ports.link),
      data_dir: join(folder, 'data'),
      bin_dir: bin,
      pgpass: join(folder, 'pgpass'),
      parameters: { ...recipe.postgresql.parameters, unix_socket_directories: folder },
    },
  })
}

function haproxyConfiguration(port: number, standbysPort: number, members: Member[]): string {
  let text = readFileSync(new URL('haproxy.cfg', RECIPE), 'utf8')
    .replaceAll(':5000', `:${port}`)
    .replaceAll(':5001', `:${standbysPort}`)
  for (const [index, { restPort, link }] of members.entries())
    text = text.replaceAll(
      `10.0.0.${index + 1}:5432 check port 8008`,
      `127.0.0.1:${link.port} check port ${restPort}`,
    )
  return text
}

interface ProgramOptions {
  home: string
  log: string
  programs: Programs
}

/** A program that runs as `nobody`. */
export function newProgram(
  program: string,
  args: string[],
  { home, log, programs }: ProgramOptions,
): Program & { end(): Promise<void> } {
  let child: ChildProcess | undefined
  const isRunning = (): boolean => child?.exitCode === null && child.signalCode === null
  const signal = (name: NodeJS.Signals): void => {
    if (isRunning()) child?.kill(name)
  }
  return {
    start() {
      const output = openSync(log, 'a')
      child = spawn(program, args, {
        ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
        cwd: home,
        env: { PATH: `${programs.postgres}:${process.env.PATH}`, HOME: home, LC_ALL: 'C.UTF-8' },
        stdio: ['ignore', output, output],
      })
      closeSync(output)
    },
    signal,
    async end() {
      if (!child || !isRunning()) return
      const exited = once(child, 'exit')
      signal('SIGKILL')
      await exited
    },
  }
}

/** The postmaster and its children. */
function postgresIds(data: string): number[] {
  try {
    const [postmaster = ''] = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')
    const children = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8')
    return [postmaster, ...children.split(' ').filter(Boolean)].map(Number)
  } catch {
    return []
  }
}

function signalAll(ids: number[], signal: NodeJS.Signals): void {
  for (const id of ids)
    try {
      process.kill(id, signal)
    } catch {
      // The process has ended.
    }
}

async function findLeaderOf(members: Member[]): Promise<Member | undefined> {
  const leaders = await Promise.all(
    members.map(async (member) => ((await isPrimary(member)) ? member : undefined)),
  )
  return leaders.find((leader) => leader !== undefined)
}

async function isPrimary(member: Member): Promise<boolean> {
  return (await request(member, '/primary')) !== undefined
}

/** Undefined: no response with 200. */
async function request({ restPort }: Member, path: string): Promise<string | undefined> {
  try {
    const response = await fetch(`http://127.0.0.1:${restPort}${path}`, {
      signal: AbortSignal.timeout(2_000),
    })
    const text = await response.text()
    return response.ok ? text : undefined
  } catch {
    return undefined
  }
}

async function untilHealthy(members: Member[]): Promise<void> {
  const deadline = Date.now() + HEALTHY_WITHIN_MS
  while (!(await isHealthy(members))) {
    if (Date.now() > deadline) throw new Error('The cluster does not become healthy')
    await delay(POLL_MS)
  }
}

async function isHealthy(members: Member[]): Promise<boolean> {
  const leader = await findLeaderOf(members)
  const found = (leader && (await findStates(leader))?.members) ?? []
  return (
    found.filter(({ state }) => state === 'streaming').length === members.length - 1 &&
    found.some(({ role }) => role === 'sync_standby')
  )
}

interface States {
  members: { name: string; role: string; state: string }[]
}

async function findStates(leader: Member): Promise<States | undefined> {
  const text = await request(leader, '/cluster')
  return text === undefined ? undefined : JSON.parse(text)
}

/** Opens connections until the server has `used`. Returns what closes them. */
export async function useConnections({ link }: Member, used: number): Promise<() => void> {
  const clients: pg.Client[] = []
  let count = 0
  while (count < used) {
    const client = new pg.Client({ connectionString: superuserUrl(link.port) })
    client.on('error', nothing)
    await client.connect()
    clients.push(client)
    const { rows } = await client.query(
      `select count(*)::int from pg_stat_activity where backend_type = 'client backend'`,
    )
    count = rows[0].count
  }
  return () => {
    for (const client of clients) client.end().catch(nothing)
  }
}

/** The standbys receive changes meanwhile, and do not show them. Patroni would end `pg_wal_replay_pause()`. Returns
 *  what ends the freeze. */
export async function freezeReplay(standbys: Member[]): Promise<() => void> {
  const ids = await Promise.all(standbys.map(findReplayId))
  signalAll(ids, 'SIGSTOP')
  return () => signalAll(ids, 'SIGCONT')
}

async function findReplayId({ link }: Member): Promise<number> {
  const client = new pg.Client({ connectionString: superuserUrl(link.port) })
  await client.connect()
  try {
    const { rows } = await client.query(
      `select pid from pg_stat_activity where backend_type = 'startup'`,
    )
    return rows[0].pid
  } finally {
    await client.end()
  }
}

const nothing = (): void => undefined

const superuserUrl = (port: number | undefined): string =>
  `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`

async function createDatabase(leader: Member | undefined): Promise<void> {
  const client = new pg.Client({ connectionString: superuserUrl(leader?.link.port) })
  await client.connect()
  try {
    await client.query(`create role muster login password '${PASSWORD}'`)
    await client.query('create database muster owner muster')
  } finally {
    await client.end()
  }
}
