import { Refused } from '../errors.ts'
import type { Db } from './database/open.ts'
import type { Scope, WriteScope } from './database/scope.ts'
import { countFound, inBatches, type Sql, select } from './database/statements.ts'
import { WITHOUT_WAIT } from './database/without-wait.ts'
import { newId } from './ids.ts'
import { parseName } from './names.ts'
import { FIXED_DEFAULTS, findQuotas, REQUESTS_PER_MINUTE } from './quotas.ts'
import { countNoun, findRow } from './references.ts'
import { daysBefore, type RemovalRun, removeRows } from './removal-run.ts'
import { findUser, type Permission, type User } from './users.ts'

export const accessLevels = ['full_access', 'read_only'] as const
export type AccessLevel = (typeof accessLevels)[number]

export interface ApiKey {
  id: string
  accountId: string
  userId: string
  name: string
  accessLevel: AccessLevel
  /** The beginning of the token. The whole token is stored only as a hash. */
  tokenPrefix: string
  /** Epoch milliseconds, like all times of records. */
  lastUsedAt: number | null
  revokedAt: number | null
  createdAt: number
}

interface ApiKeyRow {
  id: string
  account_id: string
  user_id: string
  name: string
  access_level: AccessLevel
  token_prefix: string
  last_used_at: number | null
  revoked_at: number | null
  created_at: number
}

function fromRow(row: ApiKeyRow): ApiKey {
  return {
    id: row.id,
    accountId: row.account_id,
    userId: row.user_id,
    name: row.name,
    accessLevel: row.access_level,
    tokenPrefix: row.token_prefix,
    lastUsedAt: row.last_used_at,
    revokedAt: row.revoked_at,
    createdAt: row.created_at,
  }
}

interface NewApiKeyRecord {
  userId: string
  name: string
  accessLevel: AccessLevel
  tokenHash: string
  tokenPrefix: string
}

/** Returns the key's ID. Throws `Refused` when the name is invalid, or the user is not active in
 *  the account or has too many keys. Concurrent inserts may exceed the limit by a few. */
export async function insertApiKey(
  scope: WriteScope,
  key: NewApiKeyRecord,
  now: Date,
): Promise<string> {
  await findKeyOwner(scope, key.userId)
  const id = newId()
  await scope.insert('api_keys', {
    id,
    user_id: key.userId,
    name: parseName('The key name', key.name),
    access_level: key.accessLevel,
    token_hash: key.tokenHash,
    token_prefix: key.tokenPrefix,
    created_at: now.getTime(),
    updated_at: now.getTime(),
  })
  return id
}

/** The user. Throws `Refused` when the user cannot own a further key. */
async function findKeyOwner(scope: Scope, userId: string): Promise<User> {
  const owner = await findUser(scope, userId)
  if (owner?.status !== 'active')
    throw new Refused('An API key must belong to an active user of the account.')
  const { keys_per_user: most } = await findQuotas(scope, FIXED_DEFAULTS)
  if ((await countActiveKeys(scope, userId)) >= most)
    throw new Refused(
      `A user can have at most ${countNoun(most, 'API key')}. Revoke one that you no longer need.`,
    )
  return owner
}

function countActiveKeys(scope: Scope, userId: string): Promise<number> {
  return countFound(scope.rows('api_keys').where({ user_id: userId }).whereNull('revoked_at'))
}

/** Oldest first, with the revoked ones. */
export async function listApiKeys(scope: Scope, userId: string): Promise<ApiKey[]> {
  const rows = await scope
    .rows('api_keys')
    .where({ user_id: userId })
    .orderBy('id')
    .select<ApiKeyRow[]>()
  return rows.map(fromRow)
}

/** Searches all accounts. */
export async function findApiKey(sql: Sql, id: string): Promise<ApiKey | undefined> {
  const row = await sql('api_keys').where({ id }).first<ApiKeyRow | undefined>()
  return row && fromRow(row)
}

/** Takes effect with the next request. Does nothing to a revoked key. Returns the key before the
 *  change; undefined when it does not exist. */
export async function revokeApiKey(
  scope: Scope,
  id: string,
  now: Date,
): Promise<ApiKey | undefined> {
  const row = await findRow<ApiKeyRow>(scope, 'api_keys', id, { forUpdate: true })
  if (row?.revoked_at === null)
    await scope
      .rows('api_keys')
      .where({ id: row.id })
      .update({ revoked_at: now.getTime(), updated_at: now.getTime() })
  return row && fromRow(row)
}

/** Takes effect with the next request. Returns the key before the change; undefined when it does
 *  not exist or is revoked. Throws `Refused` for an invalid name. */
export async function updateApiKey(
  scope: Scope,
  id: string,
  change: { name?: string; accessLevel?: AccessLevel },
  now: Date,
): Promise<ApiKey | undefined> {
  const row = await findRow<ApiKeyRow>(scope, 'api_keys', id, { forUpdate: true })
  if (!row || row.revoked_at !== null) return undefined
  const name = parseName('The key name', change.name ?? row.name)
  const access_level = change.accessLevel ?? row.access_level
  await scope
    .rows('api_keys')
    .where({ id: row.id })
    .update({ name, access_level, updated_at: now.getTime() })
  return fromRow(row)
}

/** Makes another user the owner, whom it returns. Takes effect with the next request. Undefined: the key does
 *  not exist or is revoked. Throws `Refused` when the user cannot own a further key. */
export async function handOverApiKey(
  scope: Scope,
  id: string,
  userId: string,
  now: Date,
): Promise<User | undefined> {
  const owner = await findKeyOwner(scope, userId)
  const updated = await scope
    .rows('api_keys')
    .where({ id })
    .whereNull('revoked_at')
    .update({ user_id: owner.id, updated_at: now.getTime() })
  return updated > 0 ? owner : undefined
}

export interface OwnedApiKey extends ApiKey {
  owner: Pick<User, 'id' | 'fullName' | 'status'>
}

interface OwnedApiKeyRow extends ApiKeyRow {
  owner_name: string
  owner_status: User['status']
}

const ownedKeys = (scope: Scope) =>
  scope
    .rows('api_keys')
    .join('users', (join) =>
      join.on('users.account_id', 'api_keys.account_id').on('users.id', 'api_keys.user_id'),
    )
    .select('api_keys.*', 'users.full_name as owner_name', 'users.status as owner_status')

const ownedFromRow = (row: OwnedApiKeyRow): OwnedApiKey => ({
  ...fromRow(row),
  owner: { id: row.user_id, fullName: row.owner_name, status: row.owner_status },
})

interface KeyFilter {
  isRevoked: boolean
  /** The owner of the keys. */
  userId?: string
  /** Only older keys: the last ID of the previous page. */
  beforeId?: string
  limit: number
}

/** The keys of all users of the account, newest first. */
export async function listAccountKeys(
  scope: Scope,
  { isRevoked, userId, beforeId, limit }: KeyFilter,
): Promise<OwnedApiKey[]> {
  const query = ownedKeys(scope).orderBy('api_keys.id', 'desc').limit(limit)
  if (isRevoked) query.whereNotNull('api_keys.revoked_at')
  else query.whereNull('api_keys.revoked_at')
  if (userId) query.where('api_keys.user_id', userId)
  if (beforeId) query.where('api_keys.id', '<', beforeId)
  const rows: OwnedApiKeyRow[] = await query
  return rows.map(ownedFromRow)
}

/** The keys whose name contains the text, ignoring the case of ASCII letters, or whose token begins
 *  with it, or is it. Newest first, with the revoked ones. */
export async function findKeysByName(
  scope: Scope,
  text: string,
  limit: number,
): Promise<OwnedApiKey[]> {
  const position = scope.dialect === 'postgres' ? 'strpos' : 'instr'
  const rows: OwnedApiKeyRow[] = await ownedKeys(scope)
    .whereRaw(
      `(${position}(lower(api_keys.name), lower(?)) > 0
        or ${position}(api_keys.token_prefix, ?) = 1 or ${position}(?, api_keys.token_prefix) = 1)`,
      [text, text, text],
    )
    .orderBy('api_keys.id', 'desc')
    .limit(limit)
  return rows.map(ownedFromRow)
}

export async function findAccountKey(scope: Scope, id: string): Promise<OwnedApiKey | undefined> {
  const [row]: OwnedApiKeyRow[] = await ownedKeys(scope).where('api_keys.id', id)
  return row && ownedFromRow(row)
}

/** The identity and permissions of an API request. */
export interface Principal {
  keyId: string
  userId: string
  accountId: string
  accessLevel: AccessLevel
  finance: Permission
  /** The rate limit that an operator has set. Null: the default applies. */
  requestsPerMinute: number | null
  managesWebhooks: boolean | number
}

export interface AcceptedKey {
  principal: Principal
}

/** The key is revoked, its owner is deactivated or its account is suspended. */
export interface RejectedKey {
  rejected: Principal
  /** The suspension of the account is the only reason. */
  isOnlySuspended: boolean
}

export type KeyStatus = AcceptedKey | RejectedKey

export interface PrincipalRow extends Principal {
  /** The key is not revoked, and its owner is not deactivated. */
  isActive: boolean | number
  isSuspended: boolean | number
}

/** A statement with one parameter, the hash of the token. */
export const FIND_PRINCIPAL = `
  select api_keys.id as "keyId", users.id as "userId", users.account_id as "accountId",
    api_keys.access_level as "accessLevel", users.finance_permission as "finance",
    ${REQUESTS_PER_MINUTE} as "requestsPerMinute",
    users.role = 'owner' or (users.role = 'admin' and users.can_manage_webhooks) as "managesWebhooks",
    api_keys.revoked_at is null and users.status = 'active' as "isActive",
    accounts.suspended_at is not null as "isSuspended"
  from api_keys join users on users.id = api_keys.user_id join accounts on accounts.id = users.account_id
  where api_keys.token_hash = ?`

/** Undefined: there is no such key. No result is cached: a revocation or suspension takes effect
 *  with the next request, on every node. */
export async function findPrincipal(sql: Sql, tokenHash: string): Promise<KeyStatus | undefined> {
  // Named, so that PostgreSQL plans it only once: planning is half of the time of this statement.
  const [row] = await select<PrincipalRow>(sql, FIND_PRINCIPAL, [tokenHash], 'find_principal')
  return row && keyStatusFromRow(row)
}

export function keyStatusFromRow({ isActive, isSuspended, ...principal }: PrincipalRow): KeyStatus {
  if (isActive && !isSuspended) return { principal }
  // An active key is rejected only because of the suspension.
  return { rejected: principal, isOnlySuspended: Boolean(isActive) }
}

/** Limits the variables of a statement. */
const MAX_UPDATED_KEYS = 500

/** Stores the latest of the `uses` of each key. `at`: epoch milliseconds. Not in a transaction: a
 *  node that vanishes in one would keep the keys locked. */
export async function updateLastUsed(
  { dialect, read, write }: Db,
  uses: { id: string; at: number }[],
): Promise<void> {
  const sql = dialect === 'postgres' ? read : write
  const latest = new Map<string, number>()
  for (const { id, at } of uses) latest.set(id, Math.max(at, latest.get(id) ?? 0))
  for (const batch of inBatches([...latest], MAX_UPDATED_KEYS)) {
    const cases = batch.map(() => 'when ? then cast(? as bigint)').join(' ')
    const update = sql('api_keys')
      .whereIn(
        'id',
        batch.map(([id]) => id),
      )
      .update({ last_used_at: sql.raw(`case id ${cases} end`, batch.flat()) })
    await (dialect === 'postgres' ? update.returning(sql.raw(WITHOUT_WAIT)) : update)
  }
}

/** A revoked key stays as long as the audit log or the request log may name it. A request with a
 *  revoked key is logged, too, and updates `last_used_at`. */
export function removeRevokedApiKeys(run: RemovalRun): Promise<void> {
  return removeRows(run, {
    table: 'api_keys',
    key: ['id'],
    condition: (rows) =>
      rows
        .where('revoked_at', '<', daysBefore(run, run.retention.auditLog))
        .where((lastUse) =>
          lastUse
            .whereNull('last_used_at')
            .orWhere('last_used_at', '<', daysBefore(run, run.retention.requestLog)),
        ),
  })
}
