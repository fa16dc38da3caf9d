import type { Command } from 'commander'
import { listAccountDeletions } from '../records/account-deletions.ts'
import { resumeAccount, suspendAccount } from '../records/account-suspension.ts'
import { type Account, listAccounts } from '../records/accounts.ts'
import { accountTransaction, type WriteScope } from '../records/database/scope.ts'
import { formatDeletions } from './account-delete.ts'
import { auditCommand } from './audit.ts'
import { ACCOUNT_MEANING, lookUpAccount } from './lookup.ts'
import {
  type CommandDatabase,
  examples,
  formatTable,
  formatTime,
  type Output,
  type Shell,
} from './shell.ts'

export function addList(account: Command, shell: Shell): void {
  account
    .command('list')
    .summary('list accounts')
    .description('List the accounts, oldest first, with the emails of their Owners.')
    .option('--deleted', 'list the entries that remain of deleted accounts')
    .addHelpText(
      'after',
      examples(
        'muster account list',
        'muster account list --json',
        'muster account list --deleted',
      ),
    )
    .action(
      shell.databaseAction(async ({ db }, { deleted = false }: { deleted?: boolean }) => {
        if (deleted) return formatDeletions(await listAccountDeletions(db.read))
        const accounts = await listAccounts(db.read)
        const text =
          accounts.length === 0
            ? 'No accounts yet. Create one:\n' +
              '  muster account create --name NAME --email EMAIL --password -'
            : toTable(accounts)
        return { document: accounts.map(toDocument), text }
      }),
    )
}

export function addSuspend(account: Command, shell: Shell): void {
  account
    .command('suspend')
    .summary('stop the API keys, sign-in and deliveries of an account')
    .description(
      'Stop an account on every running node: its API keys get 401, its users are signed out and cannot ' +
        'sign in, and no attempt of its deliveries starts. Nothing is lost: muster account resume continues ' +
        'each delivery with the attempt that is next on its schedule.',
    )
    .argument('<account>', ACCOUNT_MEANING)
    .addHelpText('after', examples('muster account suspend 0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11'))
    .action(
      shell.databaseAction((database, account: string) =>
        changeSuspension(database, account, {
          change: suspendAccount,
          action: 'account.suspended',
          describe: ({ name }, isChanged) =>
            isChanged
              ? `Suspended the account ${name}. Its API keys, sign-in and deliveries have stopped.`
              : `The account ${name} is suspended already.`,
        }),
      ),
    )
}

export function addResume(account: Command, shell: Shell): void {
  account
    .command('resume')
    .summary('let a suspended account continue')
    .description(
      'End the suspension of an account. Its API keys work again, its users can sign in again, and within ' +
        'five seconds the attempts that became due meanwhile begin.',
    )
    .argument('<account>', ACCOUNT_MEANING)
    .addHelpText('after', examples('muster account resume 0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11'))
    .action(
      shell.databaseAction((database, account: string) =>
        changeSuspension(database, account, {
          change: resumeAccount,
          action: 'account.resumed',
          describe: ({ name }, isChanged) =>
            isChanged
              ? `Resumed the account ${name}. Its API keys, sign-in and deliveries work again.`
              : `The account ${name} is not suspended.`,
        }),
      ),
    )
}

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
  const [changed = account] = await listAccounts(db.read, { id })
  return { document: toDocument(changed), text: describe(account, isChanged) }
}

function toDocument(account: Account) {
  const { id, name, ownerEmail, suspendedAt, deletionRequestedAt, createdAt } = account
  return {
    id,
    name,
    owner_email: ownerEmail,
    suspended_at: formatTime(suspendedAt),
    deletion_requested_at: formatTime(deletionRequestedAt),
    created_at: formatTime(createdAt),
  }
}

function toTable(accounts: Account[]): string {
  return formatTable(
    ['ID', 'NAME', 'OWNER', 'CREATED', 'STATE'],
    accounts.map((account) => [
      account.id,
      account.name,
      account.ownerEmail ?? '',
      formatTime(account.createdAt),
      describeState(account),
    ]),
  )
}

function describeState({ suspendedAt, deletionRequestedAt }: Account): string {
  if (deletionRequestedAt !== null) return `deleting since ${formatTime(deletionRequestedAt)}`
  return suspendedAt === null ? 'active' : `suspended ${formatTime(suspendedAt)}`
}
