import { v7 as uuidv7 } from 'uuid'
import { type Scope, type Sql, uniqueViolation } from './db.ts'
import { assertName, Refused } from './refused.ts'

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
  passwordHash: string
  role: Role
  /** For an Admin only. */
  grants?: Grant[]
  /** What is not named is by the role: all for the Owner; for the others everything but Finance, to write for an Admin, to read for a Member. */
  permissions?: Partial<Permissions>
}

const PERMISSIONS: Record<Role, Permissions> = {
  owner: { participants: 'write', tasks: 'write', jobs: 'write', exports: 'write', finance: 'write' },
  admin: { participants: 'write', tasks: 'write', jobs: 'write', exports: 'write', finance: 'none' },
  member: { participants: 'read', tasks: 'read', jobs: 'read', exports: 'read', finance: 'none' },
}

export function fromRow(row: UserRow): User {
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

function assertEmail(value: string): string {
  const email = value.trim()
  if (email.length > 254 || !/^[^\s@]+@[^\s@]+$/.test(email) || /\p{Cc}/u.test(email))
    throw new Refused(`"${value}" is not an e-mail address`)
  return email
}

function assertGrants(role: Role, given: Grant[]): void {
  if (role === 'member' && given.length > 0) throw new Refused('A member cannot manage API keys or webhooks: grants are for admins')
}

const grantColumns = (role: Role, given: Grant[]): Record<string, boolean> => ({
  can_manage_api_keys: role === 'owner' || given.includes('api_keys'),
  can_manage_webhooks: role === 'owner' || given.includes('webhooks'),
})

const permissionColumns = (given: Partial<Permissions>): Record<string, Permission> =>
  Object.fromEntries(Object.entries(given).map(([module, permission]) => [`${module}_permission`, permission]))

/** Throws `Refused` when the input cannot be or the address is taken. Returns the user's id. */
export async function insertUser(scope: Scope, user: NewUser, now: Date): Promise<string> {
  const given = user.grants ?? []
  assertGrants(user.role, given)
  const email = assertEmail(user.email)
  const id = uuidv7()
  const row = {
    id,
    email,
    email_key: emailKey(email),
    full_name: assertName('The full name', user.fullName),
    password_hash: user.passwordHash,
    role: user.role,
    status: 'active',
    ...grantColumns(user.role, given),
    ...permissionColumns({ ...PERMISSIONS[user.role], ...user.permissions }),
    created_at: now.getTime(),
    updated_at: now.getTime(),
  }
  try {
    await scope.insert('users', row)
  } catch (error) {
    if (uniqueViolation(error)?.includes('email'))
      throw new Refused(`A user with the e-mail address ${email} exists already`, { cause: error })
    throw error
  }
  return id
}

export async function findUser(scope: Scope, id: string): Promise<User | undefined> {
  const row = await scope.rows('users').where({ id }).first<UserRow | undefined>()
  return row && fromRow(row)
}

/** The account's users, oldest first. */
export async function listUsers(scope: Scope): Promise<User[]> {
  const rows = await scope.rows('users').orderBy('id').select<UserRow[]>()
  return rows.map(fromRow)
}

/** Of any account: an address belongs to one user of the whole installation. */
export async function findUserByEmail(sql: Sql, email: string): Promise<User | undefined> {
  return (await findCredentials(sql, email))?.user
}

/** For signing in. The hash is null when the user has not chosen a password yet. */
export async function findCredentials(sql: Sql, email: string): Promise<{ user: User; passwordHash: string | null } | undefined> {
  const row = await sql('users').where('email_key', emailKey(email)).first<UserRow | undefined>()
  return row && { user: fromRow(row), passwordHash: row.password_hash }
}

/** Deactivates a user, whose keys stop working at once, or takes them back. Throws `Refused` for the Owner. */
export async function updateUserStatus(scope: Scope, id: string, status: User['status'], now: Date): Promise<boolean> {
  const user = await findUser(scope, id)
  if (!user) return false
  if (user.role === 'owner') throw new Refused('The Account Owner cannot be deactivated: transfer the ownership first')
  await scope.rows('users').where({ id }).update({ status, updated_at: now.getTime() })
  return true
}

export async function updatePermissions(scope: Scope, id: string, given: Partial<Permissions>, now: Date): Promise<boolean> {
  const changed = await scope
    .rows('users')
    .where({ id })
    .update({ ...permissionColumns(given), updated_at: now.getTime() })
  return changed > 0
}

/** Replaces an Admin's grants. Throws `Refused` for a Member; an Owner keeps both whatever is given. */
export async function updateGrants(scope: Scope, id: string, given: Grant[], now: Date): Promise<boolean> {
  const user = await findUser(scope, id)
  if (!user) return false
  assertGrants(user.role, given)
  await scope
    .rows('users')
    .where({ id })
    .update({ ...grantColumns(user.role, given), updated_at: now.getTime() })
  return true
}
