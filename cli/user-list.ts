import type { Command } from 'commander'
import { deactivateUser } from '../auth/deactivation.ts'
import type { Db } from '../records/database/open.ts'
import { accountTransaction, readScope } from '../records/database/scope.ts'
import { listJoinedIds } from '../records/passwords.ts'
import { listUsers, type User, userTarget } from '../records/users.ts'
import { auditCommand } from './audit.ts'
import { lookUpAccountIds, lookUpUser } from './lookup.ts'
import { examples, formatTable, formatTime, type Shell } from './shell.ts'

export function addList(user: Command, shell: Shell): void {
  user
    .command('list')
    .summary('list users')
    .description('List users with their roles, oldest first.')
    .option('--account <account>', 'only users of this account: its ID or its name')
    .addHelpText('after', examples('muster user list', "muster user list --account 'Acme' --json"))
    .action(
      shell.databaseAction(async ({ db }, { account }: { account?: string }) => {
        const accountIds = await lookUpAccountIds(db, account)
        const users = (await Promise.all(accountIds.map((id) => listUserStates(db, id)))).flat()
        const text = users.length === 0 ? 'No users yet.' : toTable(users)
        return { document: users.map(toDocument), text }
      }),
    )
}

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

function toTable(users: UserState[]): string {
  return formatTable(
    ['ID', 'ACCOUNT', 'EMAIL', 'NAME', 'ROLE', 'STATE'],
    users.map(({ id, accountId, email, fullName, role, state }) => [
      id,
      accountId,
      email,
      fullName,
      role,
      state,
    ]),
  )
}

export function addDeactivate(user: Command, shell: Shell): void {
  user
    .command('deactivate')
    .summary('stop the sign-in and the API keys of a user')
    .description(
      'Deactivate a user. Running servers end the sessions and refuse the API keys with the next request. The ' +
        'data of the user stays. The Account Owner cannot be deactivated, and can reactivate users in the ' +
        'console.',
    )
    .requiredOption('--email <email>', 'the user')
    .addHelpText('after', examples('muster user deactivate --email bob@example.com'))
    .action(
      shell.databaseAction(async ({ db, now }, { email }: { email: string }) => {
        const user = await lookUpUser(db, email)
        await deactivate(db, user, now())
        return {
          document: { user_id: user.id, status: 'deactivated' },
          text:
            user.status === 'active'
              ? `${user.email} is deactivated and signed out. The API keys of this user are refused.`
              : `${user.email} is deactivated already.`,
        }
      }),
    )
}

function deactivate(db: Db, user: User, now: Date): Promise<void> {
  return accountTransaction(db, user.accountId, async (scope) => {
    // Also of a user who is deactivated: it ends what is left of sessions. Only a change is
    // audited.
    await deactivateUser(scope, user.id, now)
    if (user.status !== 'active') return
    await auditCommand(scope, { action: 'user.deactivated', target: userTarget(user) }, now)
  })
}
