/** Input and results of the console's pages. Every URL returns a whole page, from which htmx
 *  selects a part, so the console works without JavaScript. Periodic reloads get no frame. A POST
 *  redirects, returns the form with its errors, or shows a result, such as a new secret. */
import type { Readable } from 'node:stream'
import type { Context } from 'koa'
import type { Logger } from 'pino'
import type { OperationId, Upload } from '../../generated/operations.ts'
import type { RawInput } from '../../operations/validate.ts'
import type { AuditTarget } from '../../records/audit-log.ts'
import type { Db } from '../../records/database/open.ts'
import type { Scope, WriteScope } from '../../records/database/scope.ts'
import type { KeyedRequest } from '../../records/idempotency-keys.ts'
import type { Notice, Session } from '../../records/sessions.ts'
import type { Module, Permission, User } from '../../records/users.ts'
import type { Content } from '../shared/html.ts'
import type { ConsoleConfig } from './services.ts'
import type { Sessions } from './session.ts'
import type { Throttles } from './throttles.ts'

interface OperationInput extends RawInput {
  /** `updated_at` of the record when the form was shown. `call` throws 412 when the record has
   *  changed after that. */
  updatedAt?: string
  /** If set, `call` creates the record only once. It throws `AlreadyCreated` for a repeated
   *  request. */
  idempotency?: KeyedRequest
}

/** A request to a page. The handler of a page that needs no session gets only this, even if the
 *  visitor is signed in. */
export interface GuestVisit {
  /** From the route's path. IDs are in lower case. */
  params: Record<string, string>
  query: URLSearchParams
  /** The fields of a POST. A name may occur several times. */
  form: URLSearchParams
  now: Date
  ip: string
  /** The IPv4 address, or the /64 of the IPv6 address: the key of the throttles for guests. */
  network: string
  db: Db
  config: ConsoleConfig
  log: Logger
  ctx: Context
  sessions: Sessions
  throttles: Throttles
}

export interface Visit extends GuestVisit {
  user: User
  account: { id: string; name: string }
  session: Session
  /** The account's records, for reading. */
  scope: Scope
  /** Runs `work` in one transaction. Throws 404 when the user may no longer open the page. */
  change<T>(work: (scope: WriteScope) => Promise<T>): Promise<T>
  /** Writes an audit log entry for this user in the transaction of the change. `action` is
   *  `noun.verbed`, such as `api_key.revoked`. */
  audit(
    scope: WriteScope,
    action: string,
    target: AuditTarget,
    details?: Record<string, unknown>,
  ): Promise<void>
  /** Stores a file for an operation that takes one. */
  storeFile(file: { mediaType: string; content: AsyncIterable<Buffer> }): Promise<Upload>
  /** Runs an operation of the contract as this user: validation, transaction and events.
   *  Throws `InvalidInput` or a `StatusError`, for example 404.
   *  Checks no permission of the user: the page must have checked it. */
  call(id: OperationId, input: OperationInput): Promise<unknown>
}

export interface ConsolePage {
  title: string
  body: Content
  /** One sentence under the title. */
  lead?: Content
  /** Right of the title. */
  actions?: Content
  /** Parent pages, outermost first. */
  crumbs?: { label: string; to: string }[]
  /** Default: 200. */
  status?: number
  /** The ID of the page's main table, to which a link at the top skips. */
  listId?: string
  /** For forms and texts. */
  isNarrow?: boolean
  /** The response to periodic reloads, once there was one: many of them can share the page. */
  reloaded?: Promise<Buffer>
}

/** `to` is below /console, for example `/webhooks`. */
export interface Redirect {
  to: string
  notice?: Notice
}

export interface Download {
  fileName: string
  contentType: string
  content: Readable | string
  headers?: Record<string, string>
}

export type PageResult = ConsolePage | Redirect | Download

/** Redirects to `to` and shows `text` there. */
export function redirect(to: string, text: string, kind: Notice['kind'] = 'ok'): Redirect {
  return { to, notice: { kind, text } }
}

/** Whether this user may open the URL. The other users get 404. */
export type Access = (user: User, params: Record<string, string>) => boolean

type Handle<V> = (visit: V) => Promise<PageResult> | PageResult

/** Without `access`, guests may open the page, too. `mayLag`: a standby may be read. */
export type Route = { method: 'GET' | 'POST'; path: string } & (
  | { access?: undefined; handle: Handle<GuestVisit> }
  | { access: Access; handle: Handle<Visit>; mayLag?: true; takesFile?: true }
)

/** `path` is below /console, for example `/webhooks/:webhook`. Its parameters are IDs, except those
 *  in `NAME_PARAMS` of app.ts. */
export function get(path: string, access: Access, handle: Handle<Visit>): Route {
  return { method: 'GET', path, access, handle }
}
/** For figures, logs and lists. A form, and the page of a single record, need the current state. */
export function getFromStandby(path: string, access: Access, handle: Handle<Visit>): Route {
  return { method: 'GET', path, access, handle, mayLag: true }
}
export function post(path: string, access: Access, handle: Handle<Visit>): Route {
  return { method: 'POST', path, access, handle }
}
/** The handler reads the form itself, which has a file. */
export function postFile(path: string, access: Access, handle: Handle<Visit>): Route {
  return { method: 'POST', path, access, handle, takesFile: true }
}
export function guestGet(path: string, handle: Handle<GuestVisit>): Route {
  return { method: 'GET', path, handle }
}
export function guestPost(path: string, handle: Handle<GuestVisit>): Route {
  return { method: 'POST', path, handle }
}

export function anyUser(): boolean {
  return true
}

export function isOwner({ role }: User): boolean {
  return role === 'owner'
}

/** The roles that see keys, webhooks and requests. Grants decide what an Admin may change. */
export function isOwnerOrAdmin({ role }: User): boolean {
  return role !== 'member'
}

export { canManageKeys, canManageWebhooks } from '../../records/users.ts'

const RANK: Record<Permission, number> = { none: 0, read: 1, write: 2 }

export function hasPermission(
  { permissions }: User,
  module: Module,
  needed: 'read' | 'write',
): boolean {
  return RANK[permissions[module]] >= RANK[needed]
}
