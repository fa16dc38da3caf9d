/** Changes a Dredd transaction so that the service responds with the transaction's status. */
import { randomUUID } from 'node:crypto'
import { readBatchWords } from '../../words/batches.ts'
import { MAX_BODY_BYTES, MAX_URL_BYTES } from '../request.ts'
import type { DeclaredResponse, Transaction } from './dredd.ts'

interface Account {
  accountId: string
  userId: string
  /** A Full Access key of the Account Owner. */
  key: string
}

/** A running service. */
export interface Server {
  url: string
  newAccount(): Promise<Account>
  /** The default is a user without the Finance permission. */
  newUser(accountId: string, options?: { finance?: 'none' | 'read' }): Promise<{ userId: string }>
  /** Full Access is the default. */
  newKey(
    account: { accountId: string; userId: string },
    accessLevel?: 'full_access' | 'read_only',
  ): Promise<string>
}

/** States that no request can cause. The caller of runDreddSuite (dredd-suite.ts) passes them. */
export interface ServiceStates {
  /** Writes the export's file as if the time were `now`, by default in the export's own format. */
  finishExport(id: string, now: Date, format?: 'csv' | 'json'): Promise<void>
  /** Turns the account's exports into exports of payments, which need the Finance permission. */
  restrictExports(accountId: string): Promise<void>
  /** From now on, a request with this key is in progress. */
  useIdempotencyKey(userId: string, key: string): void
}

export interface Servers {
  /** The service. */
  app: Server
  /** A service with a limit of one request per minute, on the database of `app`. */
  limited: Server
  /** A service that cannot read its API keys. */
  broken: Server
  /** An API key of `broken`. */
  brokenKey: string
  /** A service without a database. */
  down: Server
  /** States of `app`. */
  states: ServiceStates
}

const DAY_MS = 24 * 60 * 60 * 1000
/** The file of an export expires after a week. */
const EXPIRED_AGE_MS = 8 * DAY_MS

interface Situation {
  servers: Servers
  transaction: Transaction
  declared: DeclaredResponse
  account: Account
  /** The operation downloads the file of an export. */
  isFile: boolean
  /** ID of the record in the path. */
  recordId: string
}

type Provoke = (situation: Situation) => void | Promise<void>

const ID = /[0-9a-f-]{36}/

const BY_STATUS: Record<number, Provoke> = {
  200: async ({ isFile, servers, recordId, transaction, declared: { mediaType } }) => {
    if (!isFile) return
    const format = mediaType === 'text/csv' ? 'csv' : 'json'
    await servers.states.finishExport(recordId, new Date(), format)
    transaction.expected.headers['Content-Type'] = mediaType ?? ''
  },
  201: () => undefined,
  204: () => undefined,
  304: async ({ servers, account, transaction }) => {
    const headers = await sendGet(servers.app, transaction.fullPath, account.key)
    transaction.request.headers['If-None-Match'] = headers.get('etag') ?? ''
  },
  400: ({ transaction, declared }) => {
    if (declared.operation.body) transaction.request.body = '{"broken"'
    else addQuery(transaction, 'x=%E0%A4%A')
  },
  401: ({ transaction: { request } }) => {
    delete request.headers.Authorization
  },
  403: provokeForbidden,
  404: ({ transaction }) => {
    transaction.fullPath = transaction.fullPath.replace(ID, randomUUID())
  },
  409: ({ isFile, servers, account, transaction: { request } }) => {
    // The export is not completed, so a request for its file gets 409 in any case.
    if (isFile) return
    const key = randomUUID()
    request.headers['Idempotency-Key'] = key
    servers.states.useIdempotencyKey(account.userId, key)
  },
  410: ({ servers, recordId }) =>
    servers.states.finishExport(recordId, new Date(Date.now() - EXPIRED_AGE_MS)),
  412: ({ transaction: { request } }) => {
    request.headers['If-Match'] = '"another-version"'
  },
  413: ({ transaction: { request }, declared: { operation } }) => {
    const maxBytes = readBatchWords(operation)?.max_body_bytes ?? MAX_BODY_BYTES
    request.body = JSON.stringify({ full_name: 'x'.repeat(maxBytes) })
  },
  414: ({ transaction }) => addQuery(transaction, 'x'.repeat(MAX_URL_BYTES)),
  415: ({ transaction: { request } }) => {
    request.headers['Content-Type'] = 'text/plain'
  },
  422: ({ transaction, declared }) => {
    if (declared.operation.body) transaction.request.body = '{"unknown": true}'
    else addQuery(transaction, 'unknown=1')
  },
  429: async ({ servers: { limited }, account, transaction }) => {
    await sendGet(limited, '/public/v1/event-types', account.key)
    setServer(transaction, limited)
  },
  500: ({ servers: { broken, brokenKey }, transaction }) => {
    transaction.request.headers.Authorization = `Bearer ${brokenKey}`
    setServer(transaction, broken)
  },
  503: ({ servers: { down }, transaction }) => setServer(transaction, down),
}

/** Throws for a status that has no entry in `BY_STATUS`. */
export async function provokeStatus(
  servers: Servers,
  transaction: Transaction,
  declared: DeclaredResponse,
  account: Account,
): Promise<void> {
  const { operation, response } = declared
  const provoke = BY_STATUS[response.status]
  if (!provoke)
    throw new Error(
      `${operation.id} declares ${response.status}: add it to BY_STATUS in provoke-status.ts`,
    )
  const isFile = operation.id === 'getExportFile'
  const [recordId = ''] = ID.exec(transaction.fullPath) ?? []
  await provoke({ servers, transaction, declared, account, isFile, recordId })
}

/** Uses a key of a user without the Finance permission if the operation, or the exported records,
 *  need that permission. Other operations get a Read Only key of the Account Owner. */
async function provokeForbidden(situation: Situation): Promise<void> {
  const { servers, account, isFile, transaction } = situation
  const { permission } = situation.declared.operation
  const { app, states } = servers
  const needsPermission = permission !== null || isFile
  const { userId } = needsPermission ? await app.newUser(account.accountId) : account
  if (isFile) await states.restrictExports(account.accountId)
  const key = await app.newKey({ ...account, userId }, permission ? 'full_access' : 'read_only')
  transaction.request.headers.Authorization = `Bearer ${key}`
}

/** The headers of the response. */
async function sendGet({ url }: Server, path: string, key: string): Promise<Headers> {
  const response = await fetch(url + path, { headers: { Authorization: `Bearer ${key}` } })
  await response.arrayBuffer()
  return response.headers
}

function addQuery(transaction: Transaction, query: string): void {
  transaction.fullPath += `${transaction.fullPath.includes('?') ? '&' : '?'}${query}`
}

function setServer(transaction: Transaction, { url }: Server): void {
  const { hostname, port } = new URL(url)
  Object.assign(transaction, { host: hostname, port })
}
