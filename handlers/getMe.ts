import type { SuccessBody } from '../generated/operations.ts'
import { readAccountName } from '../records/accounts.ts'
import { findAccountKey } from '../records/api-keys.ts'
import { canManageWebhooks, findUser } from '../records/users.ts'
import type { Call } from './call.ts'

export async function getMe({ scope, caller }: Call<'getMe'>): Promise<SuccessBody<'getMe'>> {
  const { apiKey, userId } = caller
  if (apiKey === undefined) throw new Error('getMe needs the API key of a request')
  const [key, user, accountName] = await Promise.all([
    findAccountKey(scope, apiKey.id),
    findUser(scope, userId),
    readAccountName(scope),
  ])
  if (!key || !user) throw new Error(`API key ${apiKey.id} or its owner was deleted`)
  return {
    api_key: { id: key.id, name: key.name, access_level: key.accessLevel },
    user: {
      id: user.id,
      full_name: user.fullName,
      email: user.email,
      role: user.role,
      finance_permission: user.permissions.finance,
      can_manage_webhooks: canManageWebhooks(user),
    },
    account: { id: scope.accountId, name: accountName },
    rate_limit: apiKey.rateLimit,
  }
}
