import { type Command, Option } from 'commander'
import { validate as isUuid } from 'uuid'
import { hashPassword } from '../auth/password.ts'
import { hasAccount } from '../records/accounts.ts'
import { transaction, writeScope } from '../records/db.ts'
import { Refused } from '../records/refused.ts'
import { type Grant, grants, insertUser, type Permission, permissions, type Role } from '../records/users.ts'
import { nameOf } from './account.ts'
import { examples, listOf, type Output, quoted, type Shell, secretOf } from './shell.ts'

interface CreateOptions {
  account: string
  email: string
  role: Exclude<Role, 'owner'>
  password: string
  fullName?: string
  grant: Grant[]
  finance: Permission
}

export function addUser(program: Command, shell: Shell): void {
  const user = program.command('user').description('Make the users of an account.')

  user
    .command('create')
    .summary('make an admin or a member')
    .description('Make a user of an account. Its Owner is made with the account itself.')
    .requiredOption('--account <id>', 'the account')
    .requiredOption('--email <address>', 'to sign in with; no two users of the installation share one')
    .addOption(new Option('--role <role>', 'an admin sees and changes more').choices(['admin', 'member']).makeOptionMandatory())
    .requiredOption('--password <password>', 'from 8 to 200 characters, or - to read it from standard input')
    .option('--full-name <name>', "the user's name (default: what stands before the @)")
    .option('--grant <list>', 'what an admin may manage: api_keys, webhooks or both', listOf(...grants), [])
    .addOption(
      new Option('--finance <permission>', "for payments, in the web interface and with the user's API keys")
        .choices(permissions)
        .default('none'),
    )
    .addHelpText(
      'after',
      examples(
        'muster user create --account ID --email bob@example.com --role admin --password - --grant api_keys,webhooks --finance read',
      ),
    )
    .action(
      shell.action((options: CreateOptions) =>
        shell.records(async ({ db }): Promise<Output> => {
          const { account, email, role, finance } = options
          if (!isUuid(account) || !(await hasAccount(db.read, account))) throw new Refused(`There is no account ${account}`)
          const passwordHash = await hashPassword(secretOf(options.password))
          const fullName = options.fullName ?? nameOf(email)
          const newUser = { email, fullName, passwordHash, role, grants: options.grant, permissions: { finance } }
          const userId = await transaction(db, (trx) => insertUser(writeScope(trx, account), newUser, new Date()))
          return {
            document: { user_id: userId },
            text: [
              `User ${userId} is made: ${email}, ${role}.`,
              `Make an API key:  muster key create --email ${quoted(email)} --name 'First key' --access full_access`,
            ].join('\n'),
          }
        }),
      ),
    )
}
