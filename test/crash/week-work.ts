/** Works on the weeks of the database DATABASE_URL as `muster migrate --weekly` and workers do, at the time NOW. Is
 *  killed just before the statement number KILL_AT, of those that lock or change something. */
import pg from 'pg'
import { openDatabase } from '../../records/database/open.ts'
import { createWeeks, splitByWeek, weeklyTables } from '../../records/weeks.ts'
import { readConfig } from '../../server/config.ts'
import { runHousekeeping } from '../housekeeping.ts'

const { DATABASE_URL: databaseUrl = '', KILL_AT, NOW } = process.env
const now = Number(NOW)
const query = pg.Client.prototype.query as (...args: unknown[]) => unknown
let statements = 0
pg.Client.prototype.query = function countStatement(this: pg.Client, ...args: unknown[]) {
  const [input] = args as [string | { text?: string }]
  const text = typeof input === 'string' ? input : input?.text
  const changes = /^(alter|create|drop|lock|insert|update|delete|commit)\b/i.test(text ?? '')
  if (changes && ++statements === Number(KILL_AT)) process.kill(process.pid, 'SIGKILL')
  return query.apply(this, args)
} as typeof pg.Client.prototype.query

const db = openDatabase({ databaseUrl })
const work: Record<string, () => Promise<unknown>> = {
  split: () => splitByWeek(db, now),
  async create() {
    for (const table of weeklyTables) await createWeeks(db, table, now)
  },
  retain: () =>
    runHousekeeping({ db, config: readConfig(process.env) }, 'hour', { now: () => new Date(now) }),
}
await work[process.argv[2] ?? '']?.()
await db.close()
