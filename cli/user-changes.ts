import type { Command } from 'commander'
import { deactivateUser } from '../auth/deactivation.ts'
import { accountTransaction } from '../records/database/scope.ts'
import { updateEmail, userTarget } from '../records/users.ts'
import { auditCommand } from './audit.ts'
import { lookUpUser } from './lookup.ts'
import { type CommandDatabase, examples, type Output, type Shell } from './shell.ts'

interface UpdateOptions {
  email: string
  newEmail: string
}

export function addUpdate(user: Command, shell: Shell): void {
  user
    .command('update')
    .summary('change the email of a user')
    .description(
      'Change the email that a user signs in with. Emails are not verified: if somebody has signed up with ' +
        "another person's email, this command frees that email, so that the person can sign up or be invited.",
    )
    .requiredOption('--email <email>', 'the email of the user')
    .requiredOption('--new-email <email>', 'the new email, unique in the installation')
    .addHelpText(
      'after',
      examples('muster user update --email bob@example.com --new-email not-bob@example.com'),
    )
    .action(shell.databaseAction(changeEmail))
}

async function changeEmail(
  { db, now }: CommandDatabase,
  { email, newEmail }: UpdateOptions,
): Promise<Output> {
  const user = await lookUpUser(db, email)
  const to = newEmail.trim()
  await accountTransaction(db, user.accountId, async (scope) => {
    await updateEmail(scope, user.id, to, now())
    await auditCommand(
      scope,
      {
        action: 'user.email_changed',
        target: userTarget(user),
        details: { changes: { email: { from: user.email, to } } },
      },
      now(),
    )
  })
  return {
    document: { user_id: user.id, email: to },
    text: `${user.fullName} signs in as ${to} from now on.`,
  }
}

export function addDeactivate(user: Command, shell: Shell): void {
  user
    .command('deactivate')
    .summary('stop the sign-in and the API keys of a user')
    .description(
      'Deactivate a user. Running nodes end the sessions and refuse the API keys with the next request. The ' +
        'data of the user stays. The Account Owner cannot be deactivated, and can reactivate users in the ' +
        'console.',
    )
    .requiredOption('--email <email>', 'the email of the user')
    .addHelpText('after', examples('muster user deactivate --email bob@example.com'))
    .action(
      shell.databaseAction(async ({ db, now }, { email }: { email: string }) => {
        const user = await lookUpUser(db, email)
        const wasActive = await accountTransaction(db, user.accountId, async (scope) => {
          const before = await deactivateUser(scope, user.id, now())
          if (before?.status !== 'active') return false
          const target = userTarget(user)
          await auditCommand(scope, { action: 'user.deactivated', target }, now())
          return true
        })
        return {
          document: { user_id: user.id, status: 'deactivated' },
          text: wasActive
            ? `${user.email} is deactivated and signed out. The API keys of this user are refused.`
            : `${user.email} is deactivated already.`,
        }
      }),
    )
}
