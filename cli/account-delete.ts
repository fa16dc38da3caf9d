import { setTimeout as delay } from 'node:timers/promises'
import { validate as isUuid } from 'uuid'
import { Refused } from '../errors.ts'
import { type AccountDeletion, findAccountDeletion } from '../records/account-deletions.ts'
import { deleteAccount } from '../records/account-suspension.ts'
import type { Db } from '../records/database/open.ts'
import { accountTransaction } from '../records/database/scope.ts'
import { quoteForShell } from '../web/shared/shell.ts'
import { databaseCommand, listOutput } from './commands.ts'
import { ACCOUNT_MEANING, lookUpAccount } from './lookup.ts'
import { formatTime, type Output } from './shell.ts'

const POLL_MS = 500
/** After this time without progress, no worker seems to be running, and the command ends. */
const MAX_STALL_MS = 15_000

interface DeleteOptions {
  confirm?: string
  wait: boolean
  json?: boolean
}

export const remove = databaseCommand({
  name: 'delete',
  summary: 'delete an account and everything in it',
  description:
    'Suspend an account at once, then erase its users, records, events, deliveries, files and logs. This ' +
    'cannot be undone. Running workers erase the account in the background. The command shows their ' +
    'progress; Ctrl-C ends only the command. One entry without personal data remains: "muster account ' +
    'list --deleted" shows it.',
  declare: (command) =>
    command
      .argument('<account>', ACCOUNT_MEANING)
      .option('--confirm <name>', 'the name of the account, to confirm the deletion')
      .option('--no-wait', 'do not wait until the account is erased'),
  examples: ['muster account delete Acme --confirm Acme'],
  async run({ db, now, print }, account: string, options: DeleteOptions) {
    const completed = await findCompletedDeletion(db, account)
    const id = completed?.id ?? (await requestDeletion(db, account, options.confirm, now))
    const onProgress = (rows: number): void => {
      if (!options.json) print(`Erased ${rows} rows.`)
    }
    if (options.wait) await waitForDeletion(db, id, onProgress)
    const deletion = await findAccountDeletion(db.read, id)
    if (!deletion) throw new Error(`The deletion of account ${id} is not stored`)
    return { document: toDocument(deletion), text: describe(deletion) }
  },
})

/** Finds an erased account by its ID only, because its name is erased, too. Undefined: `account` is
 *  not the ID of an erased account. */
async function findCompletedDeletion(
  db: Db,
  account: string,
): Promise<AccountDeletion | undefined> {
  const deletion = isUuid(account) ? await findAccountDeletion(db.read, account) : undefined
  return deletion?.completedAt == null ? undefined : deletion
}

/** Returns the ID of the account. Throws `Refused` if `confirm` is not its name. */
async function requestDeletion(
  db: Db,
  account: string,
  confirm: string | undefined,
  now: () => Date,
): Promise<string> {
  const { id, name } = await lookUpAccount(db, account)
  if (confirm !== name)
    throw new Refused(
      `This erases the account ${name} with everything in it, and cannot be undone. ` +
        `To confirm, add --confirm ${quoteForShell(name)}`,
    )
  await accountTransaction(db, id, (scope) => deleteAccount(scope, now()))
  return id
}

/** Resolves when the account is erased, at Ctrl-C, or when no worker makes progress. */
async function waitForDeletion(
  db: Db,
  id: string,
  onProgress: (removedRows: number) => void,
): Promise<void> {
  const interrupt = new AbortController()
  const onInterrupt = (): void => interrupt.abort()
  process.once('SIGINT', onInterrupt)
  try {
    let removedRows = 0
    let progressAtMs = performance.now()
    while (!interrupt.signal.aborted && performance.now() - progressAtMs < MAX_STALL_MS) {
      const deletion = await findAccountDeletion(db.read, id)
      if (deletion && deletion.removedRows > removedRows) {
        removedRows = deletion.removedRows
        progressAtMs = performance.now()
        onProgress(removedRows)
      }
      if (deletion?.completedAt != null) return
      await delay(POLL_MS, undefined, { signal: interrupt.signal }).catch(() => undefined)
    }
  } finally {
    process.off('SIGINT', onInterrupt)
  }
}

function describe({ id, completedAt, removedRows }: AccountDeletion): string {
  if (completedAt !== null)
    return `The account ${id} was erased at ${formatTime(completedAt)}: ${removedRows} rows.`
  return [
    `The account ${id} is suspended, and ${removedRows} of its rows are erased so far.`,
    'Running workers continue. Without one, the next start of the service continues:  muster serve',
  ].join('\n')
}

export function formatDeletions(deletions: AccountDeletion[]): Output {
  return listOutput(deletions, {
    toDocument,
    columns: {
      ID: ({ id }) => id,
      REQUESTED: ({ requestedAt }) => formatTime(requestedAt),
      ERASED: ({ completedAt }) => formatTime(completedAt) ?? 'not yet',
      ROWS: ({ removedRows }) => removedRows,
    },
    none: 'No account was deleted.',
  })
}

function toDocument({ id, requestedAt, removedRows, completedAt }: AccountDeletion) {
  return {
    id,
    requested_at: formatTime(requestedAt),
    removed_rows: removedRows,
    completed_at: formatTime(completedAt),
  }
}
