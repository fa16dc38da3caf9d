/** Changes a Dredd transaction so that the service responds with the transaction's status. */
import { randomUUID } from 'node:crypto'
import { readBatchWords } from '../../words/batches.ts'
import { MAX_BODY_BYTES, MAX_FILE_BYTES, MAX_URL_BYTES } from '../request.ts'
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

/** The records with files. */
export type Files = 'exports' | 'imports'

const FILE_OPERATIONS: Record<string, Files> = {
  getExportFile: 'exports',
  getImportErrors: 'imports',
}

/** States that no request can cause. The caller of runDreddSuite (dredd-suite.ts) passes them. */
export interface ServiceStates {
  /** Ends the export or import as if the time were `now`, by default in its own format. */
  finishFile(files: Files, id: string, now: Date, mediaType?: string | null): Promise<void>
  /** Turns the account's exports or imports into those of payments, which need the Finance
   *  permission. */
  restrictFiles(files: Files, accountId: string): Promise<void>
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
/** A file expires after a week. */
const EXPIRED_AGE_MS = 8 * DAY_MS

interface Situation {
  servers: Servers
  transaction: Transaction
  declared: DeclaredResponse
  account: Account
  /** Whose file the operation downloads. */
  files: Files | undefined
  /** ID of the record in the path. */
  recordId: string
}

type Provoke = (situation: Situation) => void | Promise<void>

const ID = /[0-9a-f-]{36}/

const BY_STATUS: Record<number, Provoke> = {
  200: async ({ files, servers, recordId, transaction, declared: { mediaType } }) => {
    if (!files) return
    await servers.states.finishFile(files, recordId, new Date(), mediaType)
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
  409: ({ files, servers, account, transaction: { request } }) => {
    // The record is not completed, so a request for its file gets 409 in any case.
    if (files) return
    const key = randomUUID()
    request.headers['Idempotency-Key'] = key
    servers.states.useIdempotencyKey(account.userId, key)
  },
  410: async ({ servers, recordId, files }) => {
    const expired = new Date(Date.now() - EXPIRED_AGE_MS)
    if (files) await servers.states.finishFile(files, recordId, expired)
  },
  412: ({ transaction: { request } }) => {
    request.headers['If-Match'] = '"another-version"'
  },
  413: ({ transaction: { request }, declared: { operation } }) => {
    const isFile = operation.files.length > 0
    const maxBytes = readBatchWords(operation)?.max_body_bytes ?? MAX_BODY_BYTES
    request.body = isFile
      ? 'x'.repeat(MAX_FILE_BYTES + 1)
      : JSON.stringify({ full_name: 'x'.repeat(maxBytes) })
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
  const files = FILE_OPERATIONS[operation.id]
  const [recordId = ''] = ID.exec(transaction.fullPath) ?? []
  await provoke({ servers, transaction, declared, account, files, recordId })
}

/** Uses a key of a user without the Finance permission if the operation, or the records of the file,
 *  need that permission. Other operations get a Read Only key of the Account Owner. */
async function provokeForbidden(situation: Situation): Promise<void> {
  const { servers, account, files, transaction } = situation
  const { permission } = situation.declared.operation
  const { app, states } = servers
  const needsPermission = permission !== null || files !== undefined
  const { userId } = needsPermission ? await app.newUser(account.accountId) : account
  if (files) await states.restrictFiles(files, account.accountId)
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
