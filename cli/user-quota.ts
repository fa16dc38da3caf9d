import { Option } from 'commander'
import { accountTransaction } from '../records/database/scope.ts'
import { findRateLimit, findUser, updateRateLimit, userTarget } from '../records/users.ts'
import { parseRateLimit, type QuotaChange } from './account-quota.ts'
import { auditCommand } from './audit.ts'
import { databaseCommand } from './commands.ts'
import { lookUpUser } from './lookup.ts'

interface QuotaOptions {
  email: string
  requestsPerMinute?: QuotaChange
}

export const quota = databaseCommand({
  name: 'quota',
  summary: 'show or set the rate limit of a user',
  description:
    'Show how many requests per minute a user may make with all API keys together, or set it. The value ' +
    '"default" restores the limit of the account. Running nodes apply a new limit at once.',
  declare: (command) =>
    command
      .requiredOption('--email <email>', 'the email of the user')
      .addOption(
        new Option('--requests-per-minute <number>', 'the most requests per minute').argParser(
          parseRateLimit,
        ),
      ),
  examples: [
    'muster user quota --email bob@example.com',
    'muster user quota --email bob@example.com --requests-per-minute 600',
    'muster user quota --email bob@example.com --requests-per-minute default',
  ],
  async run({ db, config, now }, { email, requestsPerMinute: change }: QuotaOptions) {
    const user = await lookUpUser(db, email)
    const limit = await accountTransaction(db, user.accountId, async (scope) => {
      const from = await findRateLimit(scope, user, config.quotas)
      if (change === undefined) return from
      await updateRateLimit(scope, user.id, change === 'default' ? null : change, now())
      const changed = (await findUser(scope, user.id)) ?? user
      const to = await findRateLimit(scope, changed, config.quotas)
      const details = { changes: { requests_per_minute: { from, to } } }
      const target = userTarget(user)
      await auditCommand(scope, { action: 'user.quota_changed', target, details }, now())
      return to
    })
    return {
      document: { user_id: user.id, requests_per_minute: limit },
      text: `${user.email} may make ${limit} requests per minute, with all API keys together.`,
    }
  },
})
