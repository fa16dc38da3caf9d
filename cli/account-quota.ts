import { InvalidArgumentError, Option } from 'commander'
import { accountTransaction } from '../records/database/scope.ts'
import {
  countUse,
  findQuotas,
  type QuotaName,
  type Quotas,
  quotaNames,
  setQuota,
} from '../records/quotas.ts'
import { auditCommand } from './audit.ts'
import { databaseCommand, toTable } from './commands.ts'
import type { CommandDatabase } from './installation.ts'
import { ACCOUNT_MEANING, lookUpAccount } from './lookup.ts'
import type { Output } from './shell.ts'

export type QuotaChange = number | 'default'
type QuotaChanges = Partial<Record<QuotaName, QuotaChange>>

const MEANINGS: Record<QuotaName, string> = {
  requests_per_minute: 'the most requests per minute of each user (their own quota comes first)',
  records: 'the most records',
  events_per_day: 'the most events within a day (UTC)',
  webhooks: 'the most webhooks',
  users: 'the most users',
  keys_per_user: 'the most active API keys of each user',
  export_mib: 'the most MiB of files of exports and imports',
  unfinished_exports: 'the most exports that are queued or in progress',
  unfinished_imports: 'the most imports that are queued or in progress',
}

const OPTIONS = quotaNames.map((name) => ({ name, option: newOption(name) }))

export const quota = databaseCommand({
  name: 'quota',
  summary: 'show or set the quotas of an account',
  description:
    'Show what an account uses and may use, or set its quotas. The value "default" restores the quota of the ' +
    'settings. Running nodes apply a new quota within a minute, and a new rate limit at once. A quota below ' +
    'the use deletes nothing: it only refuses more. "muster user quota" sets the rate limit of one user.',
  declare: (command) => {
    command.argument('<account>', ACCOUNT_MEANING)
    for (const { option } of OPTIONS) command.addOption(option)
  },
  examples: [
    'muster account quota Acme',
    'muster account quota Acme --records 5000000 --events-per-day 2000000',
    'muster account quota Acme --requests-per-minute 600',
    'muster account quota Acme --records default',
  ],
  run(database, account: string, values: Record<string, QuotaChange | undefined>) {
    const changes = OPTIONS.map(({ name, option }) => [name, values[option.attributeName()]])
    return setAndShowQuotas(database, account, Object.fromEntries(changes))
  },
})

function newOption(name: QuotaName): Option {
  const parse = name === 'requests_per_minute' ? parseRateLimit : parseQuota
  return new Option(`--${name.replaceAll('_', '-')} <number>`, MEANINGS[name]).argParser(parse)
}

function parseQuota(value: string): QuotaChange {
  if (value === 'default') return value
  const number = Number(value)
  if (!/^\d+$/.test(value) || !Number.isSafeInteger(number))
    throw new InvalidArgumentError('Use a whole number, or "default".')
  return number
}

/** As RATE_LIMIT_PER_MINUTE. */
const MAX_RATE_LIMIT = 1_000_000_000

export function parseRateLimit(value: string): QuotaChange {
  const quota = parseQuota(value)
  if (quota === 0 || Number(quota) > MAX_RATE_LIMIT)
    throw new InvalidArgumentError(`Use a whole number from 1 to ${MAX_RATE_LIMIT}, or "default".`)
  return quota
}

async function setAndShowQuotas(
  { db, config, now }: CommandDatabase,
  account: string,
  changes: QuotaChanges,
): Promise<Output> {
  const { id, name } = await lookUpAccount(db, account)
  const rows = await accountTransaction(db, id, async (scope) => {
    const before = await findQuotas(scope, config.quotas)
    for (const quota of quotaNames) {
      const change = changes[quota]
      if (change === undefined) continue
      await setQuota(scope, quota, change === 'default' ? null : change)
      const to = change === 'default' ? config.quotas[quota] : change
      await auditCommand(
        scope,
        {
          action: 'account.quota_changed',
          target: { type: 'account', id, name },
          details: { changes: { [quota]: { from: before[quota], to } } },
        },
        now(),
      )
    }
    const use: Partial<Quotas> = await countUse(scope, now())
    const quotas = await findQuotas(scope, config.quotas)
    return quotaNames.map((quota) => ({ quota, use: use[quota] ?? null, limit: quotas[quota] }))
  })
  return {
    document: { account_id: id, quotas: rows },
    text: toTable(rows, {
      QUOTA: (row) => row.quota,
      USED: ({ use }) => use,
      LIMIT: ({ limit }) => limit,
    }),
  }
}
