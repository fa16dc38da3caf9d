/** Debian's PgBouncer in front of the PostgreSQL server of the tests, on loopback and in a
 *  temporary folder. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { freePort, NOBODY } from './postgres.ts'

export interface PgBouncer extends AsyncDisposable {
  /** The URL of the same database through PgBouncer. */
  through(databaseUrl: string): string
}

interface PgBouncerOptions {
  poolMode: 'transaction' | 'session'
  /** The most connections to each database. */
  poolSize: number
}

// Debian installs PgBouncer in a folder that only root's search path contains.
const environment = { PATH: `${process.env.PATH}:/usr/sbin` }
const START_TIMEOUT_MS = 10_000

export const isPgBouncerInstalled =
  spawnSync('pgbouncer', ['--version'], { env: environment }).error === undefined

export async function startPgBouncer(
  postgresUrl: string,
  { poolMode, poolSize }: PgBouncerOptions,
): Promise<PgBouncer> {
  const { hostname, port: postgresPort, username } = new URL(postgresUrl)
  const directory = await mkdtemp(join(tmpdir(), 'muster-pgbouncer-'))
  const users = join(directory, 'users.txt')
  const settings = join(directory, 'pgbouncer.ini')
  const port = await freePort()
  await writeFile(users, `"${username}" ""\n`)
  await writeFile(
    settings,
    `[databases]
* = host=${hostname} port=${postgresPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
pool_mode = ${poolMode}
default_pool_size = ${poolSize}
max_client_conn = 500
`,
  )
  // PgBouncer refuses to run as root.
  const isRoot = process.getuid?.() === 0
  const user = isRoot ? { uid: NOBODY, gid: NOBODY } : {}
  if (isRoot) await chown(directory, NOBODY, NOBODY)
  await chmod(directory, 0o755)
  const server = spawn('pgbouncer', ['--quiet', settings], {
    ...user,
    cwd: directory,
    env: environment,
    stdio: 'ignore',
  })
  const exited = once(server, 'exit')
  const kill = (): void => void server.kill('SIGKILL')
  process.once('exit', kill)
  const through = (databaseUrl: string): string =>
    Object.assign(new URL(databaseUrl), { port: String(port) }).href
  const stop = async (): Promise<void> => {
    kill()
    process.off('exit', kill)
    await exited
    await rm(directory, { recursive: true, force: true })
  }
  try {
    await waitForConnection(through(postgresUrl))
  } catch (error) {
    await stop()
    throw error
  }
  return { through, [Symbol.asyncDispose]: stop }
}

async function waitForConnection(connectionString: string): Promise<void> {
  const deadline = Date.now() + START_TIMEOUT_MS
  for (;;) {
    const client = new pg.Client({ connectionString, connectionTimeoutMillis: 1_000 })
    client.on('error', () => undefined)
    try {
      await client.connect()
      await client.end()
      return
    } catch (error) {
      if (Date.now() > deadline) throw new Error('PgBouncer did not start', { cause: error })
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}
