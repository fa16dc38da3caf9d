/** The sessions of workers. Each holds an advisory lock, which PostgreSQL releases when the process
 *  dies. */
import type { Db } from './database/open.ts'
import { select } from './database/statements.ts'

/** A leased job of the queue. `retryCount` tells its leases apart. */
export interface LeasedJob {
  id: string
  retryCount: number
}

interface SessionConnection {
  query(text: string, values: unknown[]): Promise<unknown>
}

/** An SQL expression: whether the session with the ID in `idColumn` has ended. */
export const hasEndedSql = (idColumn: string): string =>
  `pg_try_advisory_xact_lock_shared(hashtextextended(${idColumn}::text, 0))`

export async function lockSession(connection: SessionConnection, id: string): Promise<void> {
  await connection.query('select pg_advisory_lock(hashtextextended($1::uuid::text, 0))', [id])
}

/** Stores all jobs that the worker has leased. */
export async function storeLeasedJobs(
  connection: SessionConnection,
  id: string,
  jobs: LeasedJob[],
): Promise<void> {
  await connection.query(
    `insert into worker_sessions (id, jobs) values ($1, $2)
     on conflict (id) do update set jobs = excluded.jobs`,
    [id, JSON.stringify(jobs)],
  )
}

/** Moves the leased jobs from the worker's earlier session to its new one. */
export async function moveLeasedJobs(
  connection: SessionConnection,
  from: string,
  to: string,
): Promise<void> {
  await connection.query('update worker_sessions set id = $2 where id = $1', [from, to])
}

export async function deleteOwnSession(connection: SessionConnection, id: string): Promise<void> {
  await connection.query('delete from worker_sessions where id = $1', [id])
}

/** The stored sessions: those of live workers, and the ended ones with the jobs that they had
 *  leased. */
export async function listWorkerSessions(
  db: Db,
): Promise<{ live: string[]; ended: { id: string; jobs: LeasedJob[] }[] }> {
  // The jobs of live sessions are not needed, and there may be many.
  const rows = await select<{ id: string; jobs: LeasedJob[] | null }>(
    db.read,
    `select id, case when ${hasEndedSql('id')} then jobs end as jobs from worker_sessions`,
    [],
  )
  return {
    live: rows.filter(({ jobs }) => jobs === null).map(({ id }) => id),
    ended: rows.flatMap(({ id, jobs }) => (jobs === null ? [] : [{ id, jobs }])),
  }
}

export async function deleteWorkerSession(db: Db, id: string): Promise<void> {
  await db.write('worker_sessions').where({ id }).delete()
}
