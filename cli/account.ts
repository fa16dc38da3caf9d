import { assertPassword, hashPassword } from '../auth/password.ts'
import { insertAccount } from '../records/accounts.ts'
import { writeScope } from '../records/database/scope.ts'
import { transaction } from '../records/database/transaction.ts'
import { parseName } from '../records/names.ts'
import { parseEmail } from '../records/users.ts'
import { quoteForShell } from '../web/shared/shell.ts'
import { remove } from './account-delete.ts'
import { list } from './account-list.ts'
import { quota } from './account-quota.ts'
import { resume, suspend } from './account-suspension.ts'
import { auditCommand } from './audit.ts'
import { commandGroup, databaseCommand } from './commands.ts'
import { checkAll, readSecret } from './shell.ts'

interface NewUserOptions {
  email: string
  password: string
  fullName?: string
}

const create = databaseCommand({
  name: 'create',
  summary: 'create an account and its Account Owner',
  description: 'Create an account and its Account Owner, who signs in with the email and password.',
  declare: (command) =>
    command
      .requiredOption('--name <name>', 'the name of the account')
      .requiredOption('--email <email>', 'the email of the Account Owner')
      .requiredOption(
        '--password <password>',
        'from 8 to 200 characters, or - to read it from standard input',
      )
      .option(
        '--full-name <name>',
        'the name of the Account Owner (default: the part of the email before the @)',
      ),
  examples: ["muster account create --name 'Acme' --email ann@example.com --password -"],
  schema: 'migrate',
  async run({ db, now }, options: NewUserOptions & { name: string }) {
    const [name, email, fullName, password] = checkAll(
      () => parseName('The account name', options.name),
      ...newUserChecks(options),
    )
    const passwordHash = await hashPassword(password)
    const { accountId, userId } = await transaction(db, async (trx) => {
      const at = now()
      const ids = await insertAccount(trx, { name, email, fullName, passwordHash }, at)
      const target = { type: 'account', id: ids.accountId, name } as const
      await auditCommand(writeScope(trx, ids.accountId), { action: 'account.created', target }, at)
      return ids
    })
    return {
      document: { account_id: accountId, user_id: userId },
      text: [
        `Account ${accountId} was created. Its Account Owner is ${email}, user ${userId}.`,
        formatKeyHint(email),
      ].join('\n'),
    }
  },
})

export const addCommand = commandGroup(
  'account',
  'Create, list, suspend, resume and delete accounts, and set their quotas. Each account has its own users, ' +
    'records and webhooks.',
  [create, list, suspend, resume, quota, remove],
)

/** For `checkAll`: the email, the full name and the password of a new user. */
export function newUserChecks({ email, fullName, password }: NewUserOptions) {
  return [
    () => parseEmail(email),
    () => (fullName === undefined ? toDefaultName(email) : parseName('The full name', fullName)),
    () => readNewPassword(password),
  ] as const
}

function toDefaultName(email: string): string {
  return email.split('@')[0] || email
}

function readNewPassword(argument: string): string {
  const password = readSecret(argument)
  assertPassword(password)
  return password
}

export function formatKeyHint(email: string): string {
  const user = quoteForShell(email)
  return `Create an API key:  muster key create --email ${user} --name 'First key' --access full_access`
}
