import { resumeAccount, suspendAccount } from '../records/account-suspension.ts'
import { type Account, listAccounts } from '../records/accounts.ts'
import { accountTransaction, type WriteScope } from '../records/database/scope.ts'
import { accountDocument } from './account-list.ts'
import { auditCommand } from './audit.ts'
import { databaseCommand } from './commands.ts'
import type { CommandDatabase } from './installation.ts'
import { ACCOUNT_MEANING, lookUpAccount } from './lookup.ts'
import type { Output } from './shell.ts'

export const suspend = databaseCommand({
  name: 'suspend',
  summary: 'stop the API keys, sign-in and deliveries of an account',
  description:
    'Stop an account on every running node: its API keys get 401, its users are signed out and cannot ' +
    'sign in, and no attempt of its deliveries starts. Nothing is lost: muster account resume continues ' +
    'each delivery with the attempt that is next on its schedule.',
  declare: (command) => command.argument('<account>', ACCOUNT_MEANING),
  examples: ['muster account suspend Acme'],
  run: (database, account: string) =>
    changeSuspension(database, account, {
      change: suspendAccount,
      action: 'account.suspended',
      describe: ({ name }, isChanged) =>
        isChanged
          ? `Suspended the account ${name}. Its API keys, sign-in and deliveries have stopped.`
          : `The account ${name} is suspended already.`,
    }),
})

export const resume = databaseCommand({
  name: 'resume',
  summary: 'let a suspended account continue',
  description:
    'End the suspension of an account. Its API keys work again, and its users can sign in again. Attempts ' +
    'that became due during the suspension start within five seconds.',
  declare: (command) => command.argument('<account>', ACCOUNT_MEANING),
  examples: ['muster account resume Acme'],
  run: (database, account: string) =>
    changeSuspension(database, account, {
      change: resumeAccount,
      action: 'account.resumed',
      describe: ({ name }, isChanged) =>
        isChanged
          ? `Resumed the account ${name}. Its API keys, sign-in and deliveries work again.`
          : `The account ${name} is not suspended.`,
    }),
})

interface SuspensionChange {
  /** Returns false when nothing changed. */
  change(scope: WriteScope, now: Date): Promise<boolean>
  action: string
  describe(account: Account, isChanged: boolean): string
}

async function changeSuspension(
  { db, now }: CommandDatabase,
  idOrName: string,
  { change, action, describe }: SuspensionChange,
): Promise<Output> {
  const account = await lookUpAccount(db, idOrName)
  const { id, name } = account
  const isChanged = await accountTransaction(db, id, async (scope) => {
    if (!(await change(scope, now()))) return false
    const target = { type: 'account', id, name } as const
    await auditCommand(scope, { action, target }, now())
    return true
  })
  const [current = account] = await listAccounts(db.read, { id })
  return { document: accountDocument(current), text: describe(account, isChanged) }
}
