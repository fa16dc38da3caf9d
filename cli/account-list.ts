import { listAccountDeletions } from '../records/account-deletions.ts'
import { type Account, listAccounts } from '../records/accounts.ts'
import { formatDeletions } from './account-delete.ts'
import { databaseCommand, listOutput } from './commands.ts'
import { formatTime } from './shell.ts'

export const list = databaseCommand({
  name: 'list',
  summary: 'list accounts',
  description: 'List the accounts, oldest first, with the emails of their Account Owners.',
  declare: (command) =>
    command.option(
      '--deleted',
      'list the deleted accounts instead: their IDs, deletion times and numbers of erased rows',
    ),
  examples: ['muster account list', 'muster account list --json', 'muster account list --deleted'],
  async run({ db }, { deleted = false }: { deleted?: boolean }) {
    if (deleted) return formatDeletions(await listAccountDeletions(db.read))
    return listOutput(await listAccounts(db.read), {
      toDocument: accountDocument,
      columns: {
        ID: ({ id }) => id,
        NAME: ({ name }) => name,
        OWNER: ({ ownerEmail }) => ownerEmail,
        CREATED: ({ createdAt }) => formatTime(createdAt),
        STATE: describeState,
      },
      none:
        'No accounts yet. Create one:\n' +
        '  muster account create --name NAME --email EMAIL --password -',
    })
  },
})

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

function describeState({ suspendedAt, deletionRequestedAt }: Account): string {
  if (deletionRequestedAt !== null) return `deleting since ${formatTime(deletionRequestedAt)}`
  return suspendedAt === null ? 'active' : `suspended ${formatTime(suspendedAt)}`
}
