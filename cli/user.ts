import { Option } from 'commander'
import { invite } from '../auth/invitation.ts'
import { hashPassword } from '../auth/password.ts'
import { Refused } from '../errors.ts'
import { accountTransaction } from '../records/database/scope.ts'
import {
  assertGrants,
  type Grant,
  grants,
  insertUser,
  type Permission,
  permissions,
  type Role,
  userTarget,
} from '../records/users.ts'
import { formatKeyHint, newUserChecks } from './account.ts'
import { auditCommand } from './audit.ts'
import { commandGroup, databaseCommand } from './commands.ts'
import { ACCOUNT_MEANING, lookUpAccount, lookUpUser } from './lookup.ts'
import { checkAll, formatTime, parseList } from './shell.ts'
import { deactivate, update } from './user-changes.ts'
import { list } from './user-list.ts'
import { quota } from './user-quota.ts'

interface CreateOptions {
  account: string
  email: string
  role: Exclude<Role, 'owner'>
  password: string
  fullName?: string
  grant?: Grant[]
  finance: Permission
}

const create = databaseCommand({
  name: 'create',
  summary: 'create an admin or a member',
  description: 'Create a user of an account. The Account Owner is created with the account.',
  declare: (command) =>
    command
      .requiredOption('--account <account>', ACCOUNT_MEANING)
      .requiredOption('--email <email>', 'the email to sign in with, unique in the installation')
      .addOption(
        new Option('--role <role>', 'the role of the user')
          .choices(['admin', 'member'])
          .makeOptionMandatory(),
      )
      .requiredOption(
        '--password <password>',
        'from 8 to 200 characters, or - to read it from standard input',
      )
      .option('--full-name <name>', "the user's name (default: the part before the @)")
      .option(
        '--grant <list>',
        'what an admin may manage: api_keys, webhooks or both',
        parseList(...grants),
      )
      .addOption(
        new Option(
          '--finance <permission>',
          "the Finance permission, in the console and for the user's API keys",
        )
          .choices(permissions)
          .default('none'),
      ),
  examples: [
    'muster user create --account ID --email bob@example.com --role admin --password -',
    'muster user create --account ID --email eve@example.com --role member --password - --finance read',
  ],
  async run({ db, now }, options: CreateOptions) {
    const { role, finance, grant = [] } = options
    const [email, fullName, password] = checkAll(...newUserChecks(options), () =>
      assertGrants(role, grant),
    )
    const { id: accountId } = await lookUpAccount(db, options.account)
    const passwordHash = await hashPassword(password)
    const newUser = {
      email,
      fullName,
      passwordHash,
      role,
      grants: grant,
      permissions: { finance },
    }
    const userId = await accountTransaction(db, accountId, async (scope) => {
      const at = now()
      const id = await insertUser(scope, newUser, at)
      const target = { type: 'user', id, name: fullName } as const
      const details = { email, role, finance, grants: grant }
      await auditCommand(scope, { action: 'user.created', target, details }, at)
      return id
    })
    return {
      document: { user_id: userId },
      text: [`User ${userId} was created: ${email}, ${role}.`, formatKeyHint(email)].join('\n'),
    }
  },
})

const link = databaseCommand({
  name: 'link',
  summary: 'create a link to set a new password',
  description:
    'Create a one-time link to set a new password. It is valid for seven days and replaces ' +
    'earlier links. The current password stays valid until the user sets a new one.',
  declare: (command) => command.requiredOption('--email <email>', 'the email of the user'),
  examples: ['muster user link --email ann@example.com'],
  async run({ db, config, now }, { email }: { email: string }) {
    const user = await lookUpUser(db, email)
    if (user.status !== 'active')
      throw new Refused(
        `${email} is deactivated. The Account Owner can reactivate users in the console.`,
      )
    const { token, expiresAt } = await accountTransaction(db, user.accountId, async (scope) => {
      const action = 'user.password_link_made'
      await auditCommand(scope, { action, target: userTarget(user) }, now())
      return invite(scope, user.id, now())
    })
    const url = `${config.baseUrl}/console/invitation/${token}`
    return {
      document: { user_id: user.id, url, expires_at: formatTime(expiresAt) },
      text: [
        `Open this link to set a new password for ${user.email}. It is shown only once:`,
        '',
        `  ${url}`,
      ].join('\n'),
    }
  },
})

export const addCommand = commandGroup(
  'user',
  'Create, list, update and deactivate users, set their rate limits, and create links to set a password.',
  [create, list, update, link, quota, deactivate],
)
