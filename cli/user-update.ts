import type { Command } from 'commander'
import { Refused } from '../errors.ts'
import { insertAuditEntry } from '../records/audit-log.ts'
import { writeScope } from '../records/database/scope.ts'
import { transaction } from '../records/database/transaction.ts'
import { findUserByEmail, updateEmail } from '../records/users.ts'
import { examples, type Output, type Shell } from './shell.ts'

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
    .action(shell.action((options: UpdateOptions) => changeEmail(shell, options)))
}

function changeEmail(shell: Shell, { email, newEmail }: UpdateOptions): Promise<Output> {
  return shell.withDatabase(async ({ db, now }) => {
    const user = await findUserByEmail(db.read, email)
    if (!user) throw new Refused(`There is no user with the email ${email}`)
    const to = newEmail.trim()
    await transaction(db, async (trx) => {
      const scope = writeScope(trx, user.accountId)
      await updateEmail(scope, user.id, to, now())
      await insertAuditEntry(
        scope,
        {
          user: null,
          action: 'user.email_changed',
          target: { type: 'user', id: user.id, name: user.fullName },
          details: { changes: { email: { from: user.email, to } } },
          ip: null,
        },
        now(),
      )
    })
    return {
      document: { user_id: user.id, email: to },
      text: `${user.fullName} signs in as ${to} from now on.`,
    }
  })
}
