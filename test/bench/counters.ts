/** Counters of a service and of its PostgreSQL server. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import pg from 'pg'

/** A tick of /proc. Linux has 100 a second on all usual processors. */
const TICK_MS = 10
const SOCKET_WRITE = /\b(?:write|writev|sendto|sendmsg)\(\d+<TCP/

export interface Counters {
  /** CPU time of the service and of PostgreSQL, in milliseconds. */
  serviceMs: number
  postgresMs: number
  statements: number
  commits: number
  walBytes: number
}

/** CPU time of a process, its threads and its descendants, also of those that have ended. */
function cpuMsOf(pid: number): number {
  const childrenMs = childrenOf(pid).reduce((sum, child) => sum + cpuMsOf(child), 0)
  return childrenMs + (processStat(pid)?.cpuMs ?? 0)
}

function childrenOf(pid: number): number[] {
  const text = readProcess(pid, `task/${pid}/children`) ?? ''
  return text.split(' ').filter(Boolean).map(Number)
}

/** proc_pid_stat(5): the fields 4 and 14 to 17. The second field, the name, may contain spaces. */
function processStat(pid: number): { parent: number; cpuMs: number } | undefined {
  const text = readProcess(pid, 'stat')
  if (text === undefined) return undefined
  const [, parent = 0, ...rest] = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const ticks = rest.slice(9, 13).reduce((sum, time) => sum + time, 0)
  return { parent, cpuMs: ticks * TICK_MS }
}

/** Undefined: the process has ended. */
function readProcess(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

export interface OpenCounters extends AsyncDisposable {
  read(): Promise<Counters>
  /** Updates the statistics of the tables, as autovacuum does within a minute. Until then, a check
   *  of a foreign key may scan a table that was empty when its plan was made. */
  analyze(): Promise<void>
}

/** `databaseUrl`: a database of a server that only this service uses, with pg_stat_statements.
 *  Undefined: embedded mode, where the service does the work of the database. */
export async function startCounters(pid: number, databaseUrl?: string): Promise<OpenCounters> {
  const none = { postgresMs: 0, statements: 0, commits: 0, walBytes: 0 }
  if (databaseUrl === undefined)
    return {
      read: async () => ({ serviceMs: cpuMsOf(pid), ...none }),
      analyze: async () => undefined,
      [Symbol.asyncDispose]: async () => undefined,
    }
  const client = new pg.Client(databaseUrl)
  await client.connect()
  await client.query('create extension if not exists pg_stat_statements')
  const { rows } = await client.query('select pg_backend_pid() as pid')
  const postmaster = processStat(rows[0].pid)?.parent ?? 0
  return {
    async analyze() {
      await client.query('analyze')
    },
    async read() {
      // A backend reports its transactions with a delay.
      await client.query('select pg_stat_force_next_flush()')
      const { rows } = await client.query(`
        select (select sum(calls) from pg_stat_statements)::int as statements, xact_commit::int as commits,
          (pg_current_wal_lsn() - '0/0')::float8 as "walBytes"
        from pg_stat_database where datname = current_database()`)
      return {
        serviceMs: cpuMsOf(pid),
        postgresMs: cpuMsOf(postmaster),
        ...rows[0],
      }
    },
    [Symbol.asyncDispose]: () => client.end(),
  }
}

/** Counts the system calls that write to a socket while `work` runs, with strace. Undefined: strace
 *  is not installed. The process is several times slower meanwhile. */
export async function countSocketWrites(
  pid: number,
  work: () => Promise<unknown>,
): Promise<number | undefined> {
  const calls = 'trace=write,writev,sendto,sendmsg'
  const strace = spawn('strace', ['-f', '-yy', '-s', '0', '-e', calls, '-p', String(pid)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const started = once(strace, 'spawn')
  const closed = once(strace, 'close')
  closed.catch(() => undefined)
  if (!(await started.then(() => true).catch(() => false))) return undefined
  let writes = 0
  const lines = createInterface(strace.stderr)
  const attached = once(lines, 'line')
  lines.on('line', (line) => {
    if (SOCKET_WRITE.test(line)) writes++
  })
  await attached
  await work()
  strace.kill('SIGINT')
  await closed
  return writes
}
