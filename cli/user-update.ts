import type { Command } from 'commander'
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
      'Change the email that a user signs in with. Nobody proves that an email is theirs: this frees the email ' +
        'of a person that somebody else has used, so that the person can sign up or be invited.',
    )
    .requiredOption('--email <email>', 'the user')
    .requiredOption('--new-email <email>', 'the new email, unique in the installation')
    .addHelpText(
      'after',
      examples('muster user update --email bob@example.com --new-email not-bob@example.com'),
    )
    .action(
      shell.databaseAction((database, options: UpdateOptions) => changeEmail(database, options)),
    )
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
