import type { Command } from 'commander'
import { listAccountDeletions } from '../records/account-deletions.ts'
import { type Account, listAccounts } from '../records/accounts.ts'
import { formatDeletions } from './account-delete.ts'
import { examples, formatTable, formatTime, type Shell } from './shell.ts'

export function addList(account: Command, shell: Shell): void {
  account
    .command('list')
    .summary('list accounts')
    .description('List the accounts, oldest first, with the emails of their Account Owners.')
    .option(
      '--deleted',
      'list the deleted accounts instead: their IDs, deletion times and numbers of erased rows',
    )
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
        return { document: accounts.map(accountDocument), text }
      }),
    )
}

/** The document of `--json`. */
export function accountDocument(account: Account) {
  return {
    id: account.id,
    name: account.name,
    owner_email: account.ownerEmail,
    suspended_at: formatTime(account.suspendedAt),
    deletion_requested_at: formatTime(account.deletionRequestedAt),
    created_at: formatTime(account.createdAt),
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
