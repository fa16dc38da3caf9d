import { type Command, InvalidArgumentError } from 'commander'
import { insertAuditEntry } from '../records/audit-log.ts'
import { writeScope } from '../records/database/scope.ts'
import { transaction } from '../records/database/transaction.ts'
import { countUse, findQuotas, type QuotaName, quotaNames, setQuota } from '../records/quotas.ts'
import { lookUpAccount } from './lookup.ts'
import { examples, formatTable, type Output, type Shell } from './shell.ts'

type QuotaChange = number | 'default'
type QuotaOptions = Partial<Record<'records' | 'eventsPerDay' | 'webhooks', QuotaChange>>

export function addQuota(account: Command, shell: Shell): void {
  account
    .command('quota')
    .summary('show or set the quotas of an account')
    .description(
      'Show what an account uses and may use, or set its quotas. Running nodes follow within a minute. A ' +
        'smaller quota deletes nothing: it only refuses more.',
    )
    .argument('<account>', 'the ID or the name of the account')
    .option('--records <number>', 'the most records, or "default"', parseQuota)
    .option('--events-per-day <number>', 'the most events within a day (UTC)', parseQuota)
    .option('--webhooks <number>', 'the most webhooks', parseQuota)
    .addHelpText(
      'after',
      examples(
        'muster account quota Acme',
        'muster account quota Acme --records 5000000 --events-per-day 2000000',
        'muster account quota Acme --records default',
      ),
    )
    .action(
      shell.action((idOrName: string, options: QuotaOptions) =>
        setAndShowQuotas(shell, idOrName, {
          records: options.records,
          events_per_day: options.eventsPerDay,
          webhooks: options.webhooks,
        }),
      ),
    )
}

function parseQuota(value: string): QuotaChange {
  if (value === 'default') return value
  const number = Number(value)
  if (!/^\d+$/.test(value) || !Number.isSafeInteger(number))
    throw new InvalidArgumentError('Use a whole number, or "default".')
  return number
}

function setAndShowQuotas(
  shell: Shell,
  idOrName: string,
  changes: Partial<Record<QuotaName, QuotaChange>>,
): Promise<Output> {
  return shell.withDatabase(async ({ db, config, now }) => {
    const { id, name } = await lookUpAccount(db, idOrName)
    const rows = await transaction(db, async (trx) => {
      const scope = writeScope(trx, id)
      const before = await findQuotas(scope, config.quotas)
      for (const quota of quotaNames) {
        const change = changes[quota]
        if (change === undefined) continue
        await setQuota(scope, quota, change === 'default' ? null : change)
        const to = change === 'default' ? config.quotas[quota] : change
        await insertAuditEntry(
          scope,
          {
            user: null,
            action: 'account.quota_changed',
            target: { type: 'account', id, name },
            details: { changes: { [quota]: { from: before[quota], to } } },
            ip: null,
          },
          now(),
        )
      }
      const use = await countUse(scope, now())
      const quotas = await findQuotas(scope, config.quotas)
      return quotaNames.map((quota) => ({ quota, use: use[quota], limit: quotas[quota] }))
    })
    return {
      document: { account_id: id, quotas: rows },
      text: formatTable(
        ['QUOTA', 'USED', 'LIMIT'],
        rows.map(({ quota, use, limit }) => [quota, String(use), String(limit)]),
      ),
    }
  })
}
