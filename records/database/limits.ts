/** Limits of the connections to PostgreSQL. */
export interface ConnectionLimits {
  /** The most connections of one process to read and write records. */
  poolSize: number
  /** The most connections of one worker for the queue. A worker has two more: for notifications and
   *  for its session (webhooks/queue/session.ts). */
  queuePoolSize: number
  /** How long a statement may wait for a lock. */
  lockTimeoutMs: number
  /** How long a connection may be silent before TCP probes it. */
  keepAliveMs: number
}

export const DEFAULT_LIMITS: ConnectionLimits = {
  poolSize: 12,
  queuePoolSize: 6,
  lockTimeoutMs: 10_000,
  keepAliveMs: 10_000,
}
