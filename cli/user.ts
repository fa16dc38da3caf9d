import { type Command, Option } from 'commander'
import { invite } from '../auth/invitation.ts'
import { hashPassword } from '../auth/password.ts'
import { Refused } from '../errors.ts'
import { insertAuditEntry } from '../records/audit-log.ts'
import { writeScope } from '../records/database/scope.ts'
import { transaction } from '../records/database/transaction.ts'
import {
  findUserByEmail,
  type Grant,
  grants,
  insertUser,
  type Permission,
  permissions,
  type Role,
} from '../records/users.ts'
import { quoteForShell } from '../web/shared/shell.ts'
import { toDefaultName } from './account.ts'
import { assertAccount } from './lookup.ts'
import { examples, formatTime, type Output, parseList, readSecret, type Shell } from './shell.ts'

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
    .requiredOption(
      '--email <address>',
      'to sign in with; no two users of the installation share one',
    )
    .addOption(
      new Option('--role <role>', 'an admin sees and changes more')
        .choices(['admin', 'member'])
        .makeOptionMandatory(),
    )
    .requiredOption(
      '--password <password>',
      'from 8 to 200 characters, or - to read it from standard input',
    )
    .option('--full-name <name>', "the user's name (default: what stands before the @)")
    .option(
      '--grant <list>',
      'what an admin may manage: api_keys, webhooks or both',
      parseList(...grants),
      [],
    )
    .addOption(
      new Option(
        '--finance <permission>',
        "for payments, in the web interface and with the user's API keys",
      )
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
          await assertAccount(db, account)
          const passwordHash = await hashPassword(readSecret(options.password))
          const fullName = options.fullName ?? toDefaultName(email)
          const newUser = {
            email,
            fullName,
            passwordHash,
            role,
            grants: options.grant,
            permissions: { finance },
          }
          const userId = await transaction(db, async (trx) => {
            const scope = writeScope(trx, account)
            const now = new Date()
            const id = await insertUser(scope, newUser, now)
            const target = { type: 'user', id, name: fullName.trim() } as const
            await insertAuditEntry(
              scope,
              {
                user: null,
                action: 'user.created',
                target,
                details: { email, role, finance, grants: options.grant },
                ip: null,
              },
              now,
            )
            return id
          })
          return {
            document: { user_id: userId },
            text: [
              `User ${userId} is made: ${email}, ${role}.`,
              `Make an API key:  muster key create --email ${quoteForShell(email)} --name 'First key' --access full_access`,
            ].join('\n'),
          }
        }),
      ),
    )

  user
    .command('link')
    .summary('make a link to a new password')
    .description(
      'Make a one-time link by which a user chooses a new password, for whoever has forgotten theirs. It works for seven days, in place of the one before. The present password stays until then.',
    )
    .requiredOption('--email <address>', 'whose')
    .addHelpText('after', examples('muster user link --email ann@example.com'))
    .action(
      shell.action(({ email }: { email: string }) =>
        shell.records(async ({ db, config }): Promise<Output> => {
          const found = await findUserByEmail(db.read, email)
          if (!found) throw new Refused(`There is no user ${email}`)
          if (found.status !== 'active')
            throw new Refused(
              `${email} is deactivated. An Owner reactivates people in the console.`,
            )
          const { token, expiresAt } = await transaction(db, async (trx) => {
            const scope = writeScope(trx, found.accountId)
            const now = new Date()
            const target = { type: 'user', id: found.id, name: found.fullName } as const
            await insertAuditEntry(
              scope,
              { user: null, action: 'user.password_link_made', target, ip: null },
              now,
            )
            return invite(scope, found.id, now)
          })
          const url = `${config.baseUrl}/console/invitation/${token}`
          return {
            document: { user_id: found.id, url, expires_at: formatTime(expiresAt) },
            text: [
              `Whoever opens this link chooses a new password of ${found.email}. It is shown this once:`,
              '',
              `  ${url}`,
            ].join('\n'),
          }
        }),
      ),
    )
}
