/** The servers that the benchmark compares. Each runs in a process of its own. */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Koa, { type Context } from 'koa'
import { request } from 'undici'
import { authenticator } from '../../auth/authenticator.ts'
import { newRateLimiter } from '../../auth/rate-limit.ts'
import { operations } from '../../generated/operations.ts'
import { AccountQuotas } from '../../operations/account-quota.ts'
import { etagOf } from '../../operations/etag.ts'
import { KeysInUse } from '../../operations/idempotency.ts'
import { newResponseChecker } from '../../operations/response-check.ts'
import { type Db, openDatabase } from '../../records/database/open.ts'
import { accountScope, writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { findRecord, listPage } from '../../records/list.ts'
import { insertParticipant, participantListing } from '../../records/participants.ts'
import type { Config } from '../../server/config.ts'
import { respondToErrors } from '../../server/errors.ts'
import { newLogger } from '../../server/log.ts'
import { start } from '../../server/main.ts'
import { serveOperations } from '../../server/operations.ts'

export type App = keyof typeof apps
/** Returns the URL of the server, which runs until its process ends. */
type StartApp = (config: Config, accountId: string) => Promise<string>

export const apps = {
  /** The complete service, as `muster serve` runs it. */
  service: async (config) =>
    (await start({ ...config, port: 0 }, { log: newLogger(config.logLevel) })).url,

  /** Only the operations of the contract. */
  operations: serving(async (app, db, config) => {
    const log = newLogger(config.logLevel)
    const checkResponse = newResponseChecker({ mode: config.validateResponses, log })
    const keysInUse = new KeysInUse()
    const now = () => new Date()
    const quotas = new AccountQuotas({ db, now, quotas: config.quotas })
    app
      .use(identify)
      .use(respondToErrors(log))
      .use(serveOperations({ db, config, log, now, checkResponse, keysInUse, quotas }))
  }),

  /** Returns an empty object: shows the speed of the machine. */
  bareKoa: serving(async (app) => {
    app.use((ctx) => {
      ctx.body = {}
    })
  }),

  /** `getParticipant` as handwritten Koa, with the same queries and the same response headers. The
   *  difference from `operations` is the cost of the contract. */
  handwritten: serving(async (app, db, config) => {
    const authenticate = authenticator(db.read)
    const limiter = newRateLimiter(db, {
      name: 'handwritten',
      maxRequests: config.quotas.requests_per_minute,
      windowSeconds: 60,
    })
    app.use(identify).use(async (ctx: Context) => {
      const id = ctx.path.slice('/public/v1/participants/'.length)
      const status = await authenticate(ctx.get('Authorization').slice('Bearer '.length))
      if (!status || 'rejected' in status) return ctx.throw(401)
      const { principal } = status
      const state = await limiter.consume(principal.userId)
      ctx.set({
        'Cache-Control': 'private, no-cache',
        'X-RateLimit-Limit': String(state.limit),
        'X-RateLimit-Remaining': String(state.remaining),
        'X-RateLimit-Reset': String(Math.ceil((Date.now() + state.msBeforeNext) / 1000)),
        RateLimit: `"default";r=${state.remaining};t=${Math.ceil(state.msBeforeNext / 1000)}`,
        'RateLimit-Policy': `"default";q=${state.limit};w=60`,
      })
      ctx.assert(state.allowed, 429)
      const participant = await findRecord(
        readScope(db, principal.accountId),
        participantListing,
        id,
      )
      ctx.assert(participant, 404)
      const text = JSON.stringify(participant)
      ctx.set('ETag', etagOf(text))
      ctx.set('Content-Type', 'application/json')
      ctx.body = text
    })
  }),

  /** Runs the two statements of the first page of participants and returns their rows as JSON. */
  firstPage: serving(async (app, db, _, accountId) => {
    const statements = await firstPageStatements(db, accountId)
    app.use(async (ctx: Context) => {
      const rows = await Promise.all(
        statements.map(({ sql, bindings }) => db.read.raw(sql, bindings)),
      )
      ctx.body = JSON.stringify(rows)
      ctx.type = 'json'
    })
  }),

  /** Inserts a participant, responds, and sends one POST. It has no contract, events, queue and
   *  retries. */
  insertAndPost: serving(async (app, db, _, accountId) => {
    const { url } = await db.read('webhooks').where({ account_id: accountId }).first('url')
    const participant = { full_name: 'Ann Bench', status: 'active' as const, tags: [] }
    app.use(async (ctx: Context) => {
      const { id } = await transaction(db, (trx) =>
        insertParticipant(writeScope(trx, accountId), participant, new Date()),
      )
      ctx.status = 201
      ctx.body = { id }
      const post = {
        method: 'POST' as const,
        headers: { 'webhook-id': id },
        body: JSON.stringify({ resource: { id } }),
      }
      void request(url, post).then(({ body }) => body.dump())
    })
  }),
} satisfies Record<string, StartApp>

type AddMiddleware = (app: Koa, db: Db, config: Config, accountId: string) => Promise<void>

function serving(addMiddleware: AddMiddleware): StartApp {
  return async (config, accountId) => {
    const db = openDatabase(config.database)
    const app = new Koa()
    await addMiddleware(app, db, config, accountId)
    const server = createServer(app.callback())
    await new Promise<void>((resolve, reject) =>
      server.once('error', reject).listen(0, '127.0.0.1', resolve),
    )
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
}

/** The same as in the complete app. */
async function identify(ctx: Context, next: Koa.Next): Promise<void> {
  ctx.state.requestId = randomUUID()
  ctx.set('X-Request-Id', ctx.state.requestId)
  await next()
}

const readScope = (db: Db, accountId: string) =>
  accountScope({ dialect: db.dialect, sql: db.read }, accountId)

interface Statement {
  sql: string
  bindings: string[]
}

/** Returns the statements that `listParticipants` sends to the database. */
async function firstPageStatements(db: Db, accountId: string): Promise<Statement[]> {
  const statements: Statement[] = []
  // knex numbers the parameters for PostgreSQL, but `raw` takes question marks.
  const record = ({ sql, bindings }: Statement): void =>
    void statements.push({ sql: sql.replace(/\$\d+/g, '?'), bindings })
  db.read.on('query', record)
  await listPage(readScope(db, accountId), participantListing, operations.listParticipants, {
    'page[number]': 1,
    'page[size]': 25,
  })
  db.read.off('query', record)
  return statements
}
