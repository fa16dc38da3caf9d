import type { Logger } from 'pino'
import type { AccountQuotas } from '../../operations/account-quota.ts'
import type { KeysInUse } from '../../operations/idempotency.ts'
import type { ResponseChecker } from '../../operations/response-check.ts'
import type { Db } from '../../records/database/open.ts'
import type { Quotas } from '../../records/quotas.ts'
import type { RetentionDays } from '../../records/removal-run.ts'
import type { Cidr } from '../../webhooks/transport/egress.ts'
import type { SecretKeys } from '../../webhooks/transport/secret.ts'

/** The settings of the service that pages use or show. */
export interface ConsoleConfig {
  baseUrl: string
  secretKeys: SecretKeys
  isSignUpOpen: boolean
  quotas: Quotas
  webhookAllowedRanges: Cidr[]
  webhookRetryDelaysMs: number[]
  webhookTimeoutMs: number
  /** 0: never. */
  disableWebhooksAfterDays: number
  retentionDays: RetentionDays
}

export interface ConsoleServices {
  db: Db
  config: ConsoleConfig
  log: Logger
  now: () => Date
  checkResponse: ResponseChecker
  keysInUse: KeysInUse
  quotas: AccountQuotas
}
