import { deactivateUser } from '../auth/deactivation.ts'
import { accountTransaction } from '../records/database/scope.ts'
import { updateEmail, userTarget } from '../records/users.ts'
import { auditCommand } from './audit.ts'
import { databaseCommand } from './commands.ts'
import { lookUpUser } from './lookup.ts'

interface UpdateOptions {
  email: string
  newEmail: string
}

export const update = databaseCommand({
  name: 'update',
  summary: 'change the email of a user',
  description:
    'Change the email that a user signs in with. Emails are not verified: if somebody has signed up with ' +
    "another person's email, this command frees that email, so that the person can sign up or be invited.",
  declare: (command) =>
    command
      .requiredOption('--email <email>', 'the email of the user')
      .requiredOption('--new-email <email>', 'the new email, unique in the installation'),
  examples: ['muster user update --email bob@example.com --new-email not-bob@example.com'],
  async run({ db, now }, { email, newEmail }: UpdateOptions) {
    const user = await lookUpUser(db, email)
    const to = newEmail.trim()
    await accountTransaction(db, user.accountId, async (scope) => {
      await updateEmail(scope, user.id, to, now())
      const details = { changes: { email: { from: user.email, to } } }
      const target = userTarget(user)
      await auditCommand(scope, { action: 'user.email_changed', target, details }, now())
    })
    return {
      document: { user_id: user.id, email: to },
      text: `${user.fullName} signs in as ${to} from now on.`,
    }
  },
})

export const deactivate = databaseCommand({
  name: 'deactivate',
  summary: 'stop the sign-in and the API keys of a user',
  description:
    'Deactivate a user. Running nodes end the sessions and refuse the API keys with the next request. The ' +
    'data of the user stays. The Account Owner cannot be deactivated, and can reactivate users in the ' +
    'console.',
  declare: (command) => command.requiredOption('--email <email>', 'the email of the user'),
  examples: ['muster user deactivate --email bob@example.com'],
  async run({ db, now }, { email }: { email: string }) {
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
  },
})
