import { Refused } from '../errors.ts'
import type { AuditTarget } from './audit-log.ts'
import { uniqueViolation } from './database/errors.ts'
import type { Scope, WriteScope } from './database/scope.ts'
import type { Sql } from './database/statements.ts'
import { newId } from './ids.ts'
import { parseName } from './names.ts'
import { FIXED_DEFAULTS, findQuotas, type Quotas } from './quotas.ts'
import { countNoun, countRows, findRow } from './references.ts'

export const modules = ['participants', 'tasks', 'jobs', 'exports', 'finance'] as const
export const permissions = ['none', 'read', 'write'] as const
/** The Owner can give these to an Admin. The Owner always has them, a Member never. */
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
  /** The rate limit that an operator has set. Null: that of the account applies. */
  requestsPerMinute: number | null
  /** Epoch milliseconds, like all times of records. */
  createdAt: number
  updatedAt: number
}

export function userTarget({ id, fullName }: Pick<User, 'id' | 'fullName'>): AuditTarget {
  return { type: 'user', id, name: fullName }
}

export function canManageKeys(user: User): boolean {
  return hasGrant(user, 'api_keys')
}

export function canManageWebhooks(user: User): boolean {
  return hasGrant(user, 'webhooks')
}

/** The Account Owner needs no grant. */
function hasGrant({ role, grants: own }: User, grant: Grant): boolean {
  return role === 'owner' || (role === 'admin' && own.includes(grant))
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
  requests_per_minute: number | null
  created_at: number
  updated_at: number
}

export interface NewUser {
  email: string
  fullName: string
  /** Null: the user has not set a password. */
  passwordHash: string | null
  role: Role
  /** Only for an Admin. */
  grants?: Grant[]
  /** Missing modules have the default of the role, `permissionsByRole`. */
  permissions?: Partial<Permissions>
}

const everywhere = (permission: Permission): Permissions => toPermissions(() => permission)

export const permissionsByRole: Record<Role, Permissions> = {
  owner: everywhere('write'),
  admin: { ...everywhere('write'), finance: 'none' },
  member: { ...everywhere('read'), finance: 'none' },
}

function toPermissions(permissionOf: (module: Module) => Permission): Permissions {
  return Object.fromEntries(modules.map((module) => [module, permissionOf(module)])) as Permissions
}

/** The columns that `userFromRow` reads. PostgreSQL refuses a named statement with `users.*` as soon as the table has
 *  another column, for example after the migration of a later version. */
export const userColumns = [
  ...['id', 'account_id', 'email', 'full_name', 'role', 'status', 'requests_per_minute'],
  ...['created_at', 'updated_at'],
  ...grants.map((grant) => `can_manage_${grant}`),
  ...modules.map((module) => `${module}_permission`),
].map((column) => `users.${column}`)

export function userFromRow(row: Omit<UserRow, 'password_hash'>): User {
  return {
    id: row.id,
    accountId: row.account_id,
    email: row.email,
    fullName: row.full_name,
    role: row.role,
    status: row.status,
    grants: grants.filter((grant) => Boolean(row[`can_manage_${grant}`])),
    permissions: toPermissions((module) => row[`${module}_permission`]),
    requestsPerMinute: row.requests_per_minute,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

/** The unique form of an email. It is unique in the whole installation, because a user signs in
 *  with it alone. */
export function emailKey(email: string): string {
  return email.trim().normalize('NFC').toLowerCase()
}

/** A user of this or another account has the email. */
export class EmailTaken extends Refused {}

/** Returns the email trimmed. Throws `Refused` for text that is not an email. */
export function parseEmail(value: string): string {
  const email = value.trim()
  if (email === '') throw new Refused('The email must not be empty.')
  const hasEmailForm = /^[^\s@]+@[^\s@]+$/.test(email) && !/\p{Cc}/u.test(email)
  if (!hasEmailForm || email.length > 254)
    throw new Refused(`"${value}" is not an email. Use the form name@example.com.`)
  return email
}

/** Throws `Refused` for a Member with grants. */
export function assertGrants(role: Role, granted: Grant[]): void {
  if (role === 'member' && granted.length > 0)
    throw new Refused('A Member cannot manage API keys or webhooks. Only an Admin can have grants.')
}

const grantColumns = (role: Role, granted: Grant[]): Record<string, boolean> => ({
  can_manage_api_keys: role === 'owner' || granted.includes('api_keys'),
  can_manage_webhooks: role === 'owner' || granted.includes('webhooks'),
})

const permissionColumns = (permissions: Partial<Permissions>): Record<string, Permission> =>
  Object.fromEntries(
    Object.entries(permissions).map(([module, permission]) => [`${module}_permission`, permission]),
  )

/** Returns the user's ID. Throws `Refused` when the input is invalid, the email is taken or the
 *  account is full. */
export async function insertUser(scope: WriteScope, user: NewUser, now: Date): Promise<string> {
  const granted = user.grants ?? []
  assertGrants(user.role, granted)
  const email = parseEmail(user.email)
  const id = newId()
  await assertNotFull(scope)
  const row = {
    id,
    email,
    email_key: emailKey(email),
    full_name: parseName('The full name', user.fullName),
    password_hash: user.passwordHash,
    role: user.role,
    status: 'active',
    ...grantColumns(user.role, granted),
    ...permissionColumns({ ...permissionsByRole[user.role], ...user.permissions }),
    created_at: now.getTime(),
    updated_at: now.getTime(),
  }
  await scope.insert('users', row, (error) => toEmailTaken(error, email))
  return id
}

/** The quota exists because one page of the console shows all users. Concurrent inserts may exceed
 *  it by a few. */
async function assertNotFull(scope: Scope): Promise<void> {
  const { users: most } = await findQuotas(scope, FIXED_DEFAULTS)
  if ((await countRows(scope, 'users', {})) >= most)
    throw new Refused(`An account can have at most ${countNoun(most, 'user')}.`)
}

function toEmailTaken(error: unknown, email: string): unknown {
  return uniqueViolation(error)?.includes('email')
    ? new EmailTaken(`A user with the email ${email} already exists.`, { cause: error })
    : error
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

/** Searches all accounts. */
export async function findUserByEmail(sql: Sql, email: string): Promise<User | undefined> {
  const row = await sql('users').where('email_key', emailKey(email)).first<UserRow | undefined>()
  return row && userFromRow(row)
}

/** Activates or deactivates a user. The API keys of a deactivated user stop working at once.
 *  Returns the user before the change. Undefined: the user does not exist. Throws `Refused` for the
 *  Owner. */
export async function updateUserStatus(
  scope: Scope,
  id: string,
  status: User['status'],
  now: Date,
): Promise<User | undefined> {
  const user = await findUser(scope, id, { forUpdate: true })
  if (!user) return undefined
  if (user.role === 'owner')
    throw new Refused('The Account Owner cannot be deactivated. Transfer the ownership first.')
  await scope.rows('users').where({ id: user.id }).update({ status, updated_at: now.getTime() })
  return user
}

export interface UserAccess {
  role: Exclude<Role, 'owner'>
  grants: Grant[]
  permissions: Partial<Permissions>
}

/** The change takes effect with the user's next request. An Admin who becomes a Member loses the
 *  grants. Undefined: the user does not exist. Throws `Refused` for grants of a Member, and for the
 *  Owner. */
export async function updateAccess(
  scope: Scope,
  id: string,
  access: Partial<UserAccess>,
  now: Date,
): Promise<{ before: User; after: User } | undefined> {
  const before = await findUser(scope, id, { forUpdate: true })
  if (!before) return undefined
  if (before.role === 'owner')
    throw new Refused('The Account Owner has every permission. Transfer the ownership first.')
  const role = access.role ?? before.role
  const newGrants = access.grants ?? (role === 'admin' ? before.grants : [])
  assertGrants(role, newGrants)
  await scope
    .rows('users')
    .where({ id: before.id })
    .update({
      role,
      ...grantColumns(role, newGrants),
      ...permissionColumns(access.permissions ?? {}),
      updated_at: now.getTime(),
    })
  const permissions = { ...before.permissions, ...access.permissions }
  return {
    before,
    after: { ...before, role, grants: newGrants, permissions, updatedAt: now.getTime() },
  }
}

/** Makes another user the Owner, and the former Owner an Admin with both grants. Throws `Refused`
 *  when `fromId` is not the Owner, or the other user is deactivated or has not set a password. Call
 *  it in a transaction, because it can throw after the first of its two updates. */
export async function transferOwnership(
  scope: Scope,
  fromId: string,
  toId: string,
  now: Date,
): Promise<void> {
  const demoted = await scope
    .rows('users')
    .where({ id: fromId, role: 'owner' })
    .update({ role: 'admin', ...grantColumns('admin', [...grants]), updated_at: now.getTime() })
  if (demoted === 0) throw new Refused('The ownership has already been transferred.')
  const promoted = await scope
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
  if (promoted === 0)
    throw new Refused('Choose an active user of the account who has set a password.')
}

export async function updateFullName(
  scope: Scope,
  id: string,
  fullName: string,
  now: Date,
): Promise<void> {
  const full_name = parseName('The full name', fullName)
  await scope.rows('users').where({ id }).update({ full_name, updated_at: now.getTime() })
}

/** Takes effect with the user's next request. Null: the limit of the account applies. */
export async function updateRateLimit(
  scope: Scope,
  id: string,
  requestsPerMinute: number | null,
  now: Date,
): Promise<void> {
  await scope
    .rows('users')
    .where({ id })
    .update({ requests_per_minute: requestsPerMinute, updated_at: now.getTime() })
}

/** The requests per minute that the user may make. `defaults` are the quotas of the settings. */
export async function findRateLimit(
  scope: Scope,
  { requestsPerMinute }: User,
  defaults: Quotas,
): Promise<number> {
  return requestsPerMinute ?? (await findQuotas(scope, defaults)).requests_per_minute
}

/** Throws `Refused` when the email is invalid, `EmailTaken` when another user has it. */
export async function updateEmail(
  scope: Scope,
  id: string,
  input: string,
  now: Date,
): Promise<void> {
  const email = parseEmail(input)
  await scope
    .rows('users')
    .where({ id })
    .update({ email, email_key: emailKey(email), updated_at: now.getTime() })
    .catch((error: unknown) => {
      throw toEmailTaken(error, email)
    })
}

/** Deletes a user who has not set a password, which frees the email. False: the user has set a
 *  password, has API keys, is the Owner or does not exist. */
export async function deleteInvitedUser(scope: Scope, id: string): Promise<boolean> {
  const invited = scope
    .rows('users')
    .where({ id })
    .whereNull('password_hash')
    .whereNot({ role: 'owner' })
  // The command line can create keys for a user without a password.
  return (
    (await invited
      .whereNotExists(scope.rows('api_keys').whereRaw('api_keys.user_id = users.id'))
      .delete()) > 0
  )
}
