import { v7 as uuidv7 } from 'uuid'
import { Refused } from '../errors.ts'
import { uniqueViolation } from './database/errors.ts'
import type { Scope } from './database/scope.ts'
import type { Sql } from './database/statements.ts'
import { assertName } from './names.ts'
import { countRows, findRow } from './references.ts'

export const modules = ['participants', 'tasks', 'jobs', 'exports', 'finance'] as const
export const permissions = ['none', 'read', 'write'] as const
/** What the Owner may let an Admin do. The Owner always may, a Member never. */
export const grants = ['api_keys', 'webhooks'] as const

export type Module = (typeof modules)[number]
export type Permission = (typeof permissions)[number]
export type Permissions = Record<Module, Permission>
export type Grant = (typeof grants)[number]
export type Role = 'owner' | 'admin' | 'member'

export interface User {
  id: string
  accountId: string
  email: string
  fullName: string
  role: Role
  status: 'active' | 'deactivated'
  grants: Grant[]
  permissions: Permissions
  /** Epoch milliseconds, as all times of records. */
  createdAt: number
  updatedAt: number
}

export interface UserRow extends Record<`${Module}_permission`, Permission> {
  id: string
  account_id: string
  email: string
  full_name: string
  password_hash: string | null
  role: Role
  status: 'active' | 'deactivated'
  can_manage_api_keys: boolean | number
  can_manage_webhooks: boolean | number
  created_at: number
  updated_at: number
}

export interface NewUser {
  email: string
  fullName: string
  /** Null until the user has chosen a password. */
  passwordHash: string | null
  role: Role
  /** For an Admin only. */
  grants?: Grant[]
  /** What is not named is by the role: all for the Owner; for the others everything but Finance, to write for an Admin, to read for a Member. */
  permissions?: Partial<Permissions>
}

export const permissionsByRole: Record<Role, Permissions> = {
  owner: {
    participants: 'write',
    tasks: 'write',
    jobs: 'write',
    exports: 'write',
    finance: 'write',
  },
  admin: {
    participants: 'write',
    tasks: 'write',
    jobs: 'write',
    exports: 'write',
    finance: 'none',
  },
  member: { participants: 'read', tasks: 'read', jobs: 'read', exports: 'read', finance: 'none' },
}

export function userFromRow(row: UserRow): User {
  return {
    id: row.id,
    accountId: row.account_id,
    email: row.email,
    fullName: row.full_name,
    role: row.role,
    status: row.status,
    grants: grants.filter((grant) => Boolean(row[`can_manage_${grant}`])),
    permissions: {
      participants: row.participants_permission,
      tasks: row.tasks_permission,
      jobs: row.jobs_permission,
      exports: row.exports_permission,
      finance: row.finance_permission,
    },
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

/** Two addresses with one key are one address: unique over the whole installation, since a user signs in with it alone. */
export function emailKey(email: string): string {
  return email.trim().normalize('NFC').toLowerCase()
}

/** An address belongs to a user already, of this account or another. */
export class EmailTaken extends Refused {}

/** The address, trimmed. Throws `Refused`. */
export function assertEmail(value: string): string {
  const email = value.trim()
  if (email === '') throw new Refused('The e-mail address must not be empty')
  if (email.length > 254 || !/^[^\s@]+@[^\s@]+$/.test(email) || /\p{Cc}/u.test(email))
    throw new Refused(`"${value}" is not an e-mail address`)
  return email
}

function assertGrants(role: Role, given: Grant[]): void {
  if (role === 'member' && given.length > 0)
    throw new Refused('A member cannot manage API keys or webhooks: grants are for admins')
}

const grantColumns = (role: Role, given: Grant[]): Record<string, boolean> => ({
  can_manage_api_keys: role === 'owner' || given.includes('api_keys'),
  can_manage_webhooks: role === 'owner' || given.includes('webhooks'),
})

const permissionColumns = (given: Partial<Permissions>): Record<string, Permission> =>
  Object.fromEntries(
    Object.entries(given).map(([module, permission]) => [`${module}_permission`, permission]),
  )

/** As many as one page shows. */
export const MAX_USERS_PER_ACCOUNT = 500

/** Throws `Refused` when the input cannot be, the address is taken, or there are too many. Returns the user's id. */
export async function insertUser(scope: Scope, user: NewUser, now: Date): Promise<string> {
  const given = user.grants ?? []
  assertGrants(user.role, given)
  const email = assertEmail(user.email)
  const id = uuidv7()
  await assertRoom(scope)
  const row = {
    id,
    email,
    email_key: emailKey(email),
    full_name: assertName('The full name', user.fullName),
    password_hash: user.passwordHash,
    role: user.role,
    status: 'active',
    ...grantColumns(user.role, given),
    ...permissionColumns({ ...permissionsByRole[user.role], ...user.permissions }),
    created_at: now.getTime(),
    updated_at: now.getTime(),
  }
  await scope.insert('users', row).catch((error: unknown) => refuseTaken(error, email))
  return id
}

/** Two at once may make one more than the limit, which only keeps pages and lists short. */
async function assertRoom(scope: Scope): Promise<void> {
  if ((await countRows(scope, 'users', {})) >= MAX_USERS_PER_ACCOUNT)
    throw new Refused(`An account has at most ${MAX_USERS_PER_ACCOUNT} people`)
}

function refuseTaken(error: unknown, email: string): never {
  if (uniqueViolation(error)?.includes('email'))
    throw new EmailTaken(`A user with the e-mail address ${email} exists already`, { cause: error })
  throw error
}

export async function findUser(
  scope: Scope,
  id: string,
  options?: { forUpdate: boolean },
): Promise<User | undefined> {
  const row = await findRow<UserRow>(scope, 'users', id, options)
  return row && userFromRow(row)
}

export async function findOwner(scope: Scope): Promise<User | undefined> {
  const row = await scope.rows('users').where({ role: 'owner' }).first<UserRow | undefined>()
  return row && userFromRow(row)
}

/** The account's users, oldest first. */
export async function listUsers(scope: Scope): Promise<User[]> {
  const rows = await scope.rows('users').orderBy('id').select<UserRow[]>()
  return rows.map(userFromRow)
}

/** Of any account: an address belongs to one user of the whole installation. */
export async function findUserByEmail(sql: Sql, email: string): Promise<User | undefined> {
  return (await findCredentials(sql, email))?.user
}

/** For signing in. The hash is null when the user has not chosen a password yet. */
export async function findCredentials(
  sql: Sql,
  email: string,
): Promise<{ user: User; passwordHash: string | null } | undefined> {
  const row = await sql('users').where('email_key', emailKey(email)).first<UserRow | undefined>()
  return row && { user: userFromRow(row), passwordHash: row.password_hash }
}

/** Deactivates a user, whose keys stop working at once, or takes them back. Throws `Refused` for the Owner. */
export async function updateUserStatus(
  scope: Scope,
  id: string,
  status: User['status'],
  now: Date,
): Promise<boolean> {
  const user = await findUser(scope, id, { forUpdate: true })
  if (!user) return false
  if (user.role === 'owner')
    throw new Refused('The Account Owner cannot be deactivated: transfer the ownership first')
  await scope.rows('users').where({ id: user.id }).update({ status, updated_at: now.getTime() })
  return true
}

/** What somebody may do. What is left out stays as it is. */
export interface UserAccess {
  role: Exclude<Role, 'owner'>
  grants: Grant[]
  permissions: Partial<Permissions>
}

/** Changes what an Admin or a Member may do, from their next request on. An Admin who becomes a Member loses the grants. The user as they were
 *  and as they are, or undefined: there is none. Throws `Refused` for grants of a Member, and for the Owner, who may do everything. */
export async function updateAccess(
  scope: Scope,
  id: string,
  given: Partial<UserAccess>,
  now: Date,
): Promise<{ before: User; after: User } | undefined> {
  const before = await findUser(scope, id, { forUpdate: true })
  if (!before) return undefined
  if (before.role === 'owner')
    throw new Refused('The Account Owner may do everything: transfer the ownership first')
  const role = given.role ?? before.role
  const newGrants = given.grants ?? (role === 'admin' ? before.grants : [])
  assertGrants(role, newGrants)
  await scope
    .rows('users')
    .where({ id: before.id })
    .update({
      role,
      ...grantColumns(role, newGrants),
      ...permissionColumns(given.permissions ?? {}),
      updated_at: now.getTime(),
    })
  const permissions = { ...before.permissions, ...given.permissions }
  return {
    before,
    after: { ...before, role, grants: newGrants, permissions, updatedAt: now.getTime() },
  }
}

/** Makes another user the Owner, and the Owner an Admin with both grants. Throws `Refused` when `fromId` is not the Owner any more, or the
 *  other one is not active or has never chosen a password. Call it in a transaction: of two at once one is refused. */
export async function transferOwnership(
  scope: Scope,
  fromId: string,
  toId: string,
  now: Date,
): Promise<void> {
  const stepped = await scope
    .rows('users')
    .where({ id: fromId, role: 'owner' })
    .update({ role: 'admin', ...grantColumns('admin', [...grants]), updated_at: now.getTime() })
  if (stepped === 0) throw new Refused('The ownership was transferred already')
  const risen = await scope
    .rows('users')
    .where({ id: toId, status: 'active' })
    .whereNot({ id: fromId })
    .whereNotNull('password_hash')
    .update({
      role: 'owner',
      ...grantColumns('owner', []),
      ...permissionColumns(permissionsByRole.owner),
      updated_at: now.getTime(),
    })
  if (risen === 0)
    throw new Refused('The ownership goes to an active person of the account who has joined')
}

export async function updateFullName(
  scope: Scope,
  id: string,
  fullName: string,
  now: Date,
): Promise<void> {
  const full_name = assertName('The full name', fullName)
  await scope.rows('users').where({ id }).update({ full_name, updated_at: now.getTime() })
}

/** Throws `Refused` when the address cannot be, `EmailTaken` when somebody has it. */
export async function updateEmail(
  scope: Scope,
  id: string,
  given: string,
  now: Date,
): Promise<void> {
  const email = assertEmail(given)
  await scope
    .rows('users')
    .where({ id })
    .update({ email, email_key: emailKey(email), updated_at: now.getTime() })
    .catch((error: unknown) => refuseTaken(error, email))
}

/** Null: the user has not chosen a password yet. */
export async function findPasswordHash(scope: Scope, id: string): Promise<string | null> {
  const row = await scope
    .rows('users')
    .where({ id })
    .first<{ password_hash: string | null } | undefined>('password_hash')
  return row?.password_hash ?? null
}

export async function updatePassword(
  scope: Scope,
  id: string,
  passwordHash: string,
  now: Date,
): Promise<void> {
  await scope
    .rows('users')
    .where({ id })
    .update({ password_hash: passwordHash, updated_at: now.getTime() })
}

/** The account's users who have chosen a password. */
export async function listJoinedIds(scope: Scope): Promise<string[]> {
  return scope.rows('users').whereNotNull('password_hash').pluck('id')
}

/** Removes a user who has never joined, with an address that others may then use. False: there is no such user, or they have joined. */
export async function deleteInvitedUser(scope: Scope, id: string): Promise<boolean> {
  const invited = scope
    .rows('users')
    .where({ id })
    .whereNull('password_hash')
    .whereNot({ role: 'owner' })
  // A key from the command line may be in use.
  return (
    (await invited
      .whereNotExists(scope.sql('api_keys').whereRaw('api_keys.user_id = users.id'))
      .delete()) > 0
  )
}
