/** What a page of the console is given and what it answers. Every address answers with a whole page: htmx only picks a piece of it, so all of
 *  it works without JavaScript. A POST that did something answers with a redirection, or with the same page and what is wrong with the input. */
import type { Readable } from 'node:stream'
import type { Context } from 'koa'
import type { OperationId } from '../../generated/operations.ts'
import type { RawInput } from '../../operations/execute.ts'
import type { NewAuditEntry } from '../../records/audit-log.ts'
import type { Db } from '../../records/database/open.ts'
import type { Scope, WriteScope } from '../../records/database/scope.ts'
import type { Notice, Session } from '../../records/sessions.ts'
import type { Grant, Module, Permission, User } from '../../records/users.ts'
import type { Content, Html } from '../shared/html.ts'
import type { ConsoleConfig } from './services.ts'
import type { ThrottleName } from './throttles.ts'

export interface OperationInput extends RawInput {
  /** The version of the record that the form began with. When the record has changed since, nothing is changed and 412 is thrown. */
  updatedAt?: string
  /** Runs in the transaction of an operation that writes, and decides whether to call `work`. */
  around?: (scope: WriteScope, work: () => Promise<unknown>) => Promise<unknown>
}

/** A visit of somebody who need not be signed in. */
export interface GuestVisit {
  /** Of the template of the address. */
  params: Record<string, string>
  query: URLSearchParams
  /** The fields of a POST; of one name there may be several. */
  form: URLSearchParams
  now: Date
  ip: string
  /** Where that is, for counting: of IPv6 a whole /64, which is what one subscriber has. */
  network: string
  db: Db
  config: ConsoleConfig
  ctx: Context
  /** Signs in, and out who was. `prove` goes first in the transaction that does it, and throws when it must not be done. */
  signIn(
    user: Pick<User, 'id' | 'accountId'>,
    prove: (scope: WriteScope) => Promise<void>,
  ): Promise<void>
  signOut(): Promise<void>
  /** Throws `TooOften` when it was. `key` is what is counted. */
  throttle(name: ThrottleName, key: string): Promise<void>
  /** Begins the count again. */
  resetThrottle(name: ThrottleName, key: string): Promise<void>
}

export interface Visit extends GuestVisit {
  user: User
  account: { id: string; name: string }
  session: Session
  /** The account's records, for reading. */
  scope: Scope
  /** Changes the account's records in one transaction. */
  change<T>(work: (scope: WriteScope) => Promise<T>): Promise<T>
  /** Says in the audit log what this user does, in the transaction that does it. */
  audit(scope: WriteScope, entry: Omit<NewAuditEntry, 'user' | 'ip'>): Promise<void>
  /** Calls an operation of the contract as this user, with its validation, its events and its transaction. Throws `InvalidInput`, or
   *  `StatusError` such as 404. Whether the user may is for the page to see to. */
  call(id: OperationId, input: OperationInput): Promise<unknown>
}

export interface Page {
  title: string
  body: Content
  /** Under the title, in a sentence. */
  lead?: Content
  /** At the right of the title. */
  actions?: Content
  /** What it belongs to, from the top. */
  crumbs?: { label: string; to: string }[]
  /** 200 unless given. */
  status?: number
  /** Forms and texts are easier to read when they are narrow. */
  isNarrow?: boolean
}

/** `to` is below /console, such as `/webhooks`. */
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

export type Answer = Page | Redirect | Download

/** May this user open this address? Where not, there is none: 404. */
export type Access = (user: User, params: Record<string, string>) => boolean

export type Route = { method: 'GET' | 'POST'; path: string } & (
  | { guest: true; handle(visit: GuestVisit): Promise<Answer> | Answer }
  | { guest: false; access: Access; handle(visit: Visit): Promise<Answer> | Answer }
)

type Handle = (visit: Visit) => Promise<Answer> | Answer

/** `path` is below /console, such as `/webhooks/:webhook`. A parameter must be an id, unless it is named with a pattern of its own. */
export const get = (path: string, access: Access, handle: Handle): Route => ({
  method: 'GET',
  path,
  guest: false,
  access,
  handle,
})
export const post = (path: string, access: Access, handle: Handle): Route => ({
  method: 'POST',
  path,
  guest: false,
  access,
  handle,
})

type GuestHandle = (visit: GuestVisit) => Promise<Answer> | Answer
export const guestGet = (path: string, handle: GuestHandle): Route => ({
  method: 'GET',
  path,
  guest: true,
  handle,
})
export const guestPost = (path: string, handle: GuestHandle): Route => ({
  method: 'POST',
  path,
  guest: true,
  handle,
})

export const anyUser: Access = () => true
export const isOwner: Access = (user) => user.role === 'owner'
/** The Owner and the Admins: they see keys, webhooks and requests, and what they may do there is by their grants. */
export const isAdmin: Access = (user) => user.role !== 'member'
/** The Owner, and the Admins to whom the Owner has granted it. */
export const may =
  (grant: Grant): Access =>
  (user) =>
    user.role === 'owner' || (user.role === 'admin' && user.grants.includes(grant))

const RANK: Record<Permission, number> = { none: 0, read: 1, write: 2 }
export const hasPermission =
  (module: Module, needed: Exclude<Permission, 'none'>): Access =>
  (user) =>
    RANK[user.permissions[module]] >= RANK[needed]

export function isHtml(answer: Answer): answer is Page {
  return 'body' in answer
}

export type { Content, Html }
