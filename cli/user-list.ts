import type { Db } from '../records/database/open.ts'
import { readScope } from '../records/database/scope.ts'
import { listJoinedIds } from '../records/passwords.ts'
import { listUsers, type User } from '../records/users.ts'
import { type Columns, databaseCommand, listOutput } from './commands.ts'
import { lookUpAccountIds } from './lookup.ts'
import { formatTime } from './shell.ts'

export const list = databaseCommand({
  name: 'list',
  summary: 'list users',
  description: 'List users with their roles, account by account, oldest first.',
  declare: (command) =>
    command.option('--account <account>', 'only users of this account: its ID or its name'),
  examples: ['muster user list', "muster user list --account 'Acme' --json"],
  async run({ db }, { account }: { account?: string }) {
    const accountIds = await lookUpAccountIds(db, account)
    const users = (await Promise.all(accountIds.map((id) => listUserStates(db, id)))).flat()
    return listOutput(users, { toDocument, columns: COLUMNS, none: 'No users yet.' })
  },
})

interface UserState extends User {
  /** Invited: without a password so far. */
  state: 'active' | 'deactivated' | 'invited'
}

async function listUserStates(db: Db, accountId: string): Promise<UserState[]> {
  const scope = readScope(db, accountId)
  const [users, joined] = await Promise.all([listUsers(scope), listJoinedIds(scope)])
  const joinedIds = new Set(joined)
  return users.map((user) => ({
    ...user,
    state: user.status === 'active' && !joinedIds.has(user.id) ? 'invited' : user.status,
  }))
}

function toDocument(user: UserState) {
  return {
    id: user.id,
    account_id: user.accountId,
    email: user.email,
    full_name: user.fullName,
    role: user.role,
    state: user.state,
    grants: user.grants,
    permissions: user.permissions,
    created_at: formatTime(user.createdAt),
    updated_at: formatTime(user.updatedAt),
  }
}

const COLUMNS: Columns<UserState> = {
  ID: ({ id }) => id,
  ACCOUNT: ({ accountId }) => accountId,
  EMAIL: ({ email }) => email,
  NAME: ({ fullName }) => fullName,
  ROLE: ({ role }) => role,
  STATE: ({ state }) => state,
}
