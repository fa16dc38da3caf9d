/** When the rows of each table are removed. docs/operations.md repeats these rules for operators;
 *  test/records/removal-rules.test.ts compares the rules with docs/operations.md and the schema. */
import { removeRevokedApiKeys } from './api-keys.ts'
import { removeOldAttemptCounts } from './attempt-counts.ts'
import { removeOldAuditEntries } from './audit-log.ts'
import { removeExpiredFiles, removeOldExports } from './export-files.ts'
import { removeExpiredIdempotencyKeys } from './idempotency-keys.ts'
import { removeImportChunks, removeOldImports } from './imports.ts'
import { removeExpiredInvitations } from './invitations.ts'
import { removeExpiredRateLimits } from './rate-limits.ts'
import type { RemovalRun } from './removal-run.ts'
import { removeOldRequestCounts, removeOldRequestMinutes } from './reports/request-counts.ts'
import { removeOldRequests } from './request-log.ts'
import {
  removeAttempts,
  removeDeletedWebhooks,
  removeDeliveries,
  removeEndedBulkJobs,
  removeEvents,
} from './retention.ts'
import { removeExpiredSessions } from './sessions.ts'

export interface RemovalRule {
  table: string
  /** `minute` for tables whose rows expire all the time, `hour` for all others. */
  every: 'minute' | 'hour'
  /** When a row is removed. */
  rule: string
  setting?: string
  remove(run: RemovalRun): Promise<void>
}

/** In the order of a run: a row is removed before the rows that it refers to. Only the deliveries
 *  with an event are removed by the rule of `events`, together with it. */
export const removalRules: RemovalRule[] = [
  {
    table: 'idempotency_keys',
    every: 'minute',
    rule: 'At least 24 hours after the first request with the key',
    remove: removeExpiredIdempotencyKeys,
  },
  {
    table: 'rate_limits',
    every: 'minute',
    rule: 'A minute after the end of the window',
    remove: removeExpiredRateLimits,
  },
  {
    table: 'sessions',
    every: 'minute',
    rule: '30 days after the sign-in, or at the sign-out',
    remove: removeExpiredSessions,
  },
  {
    table: 'request_log',
    every: 'minute',
    rule: '30 days after the request',
    setting: 'REQUEST_LOG_RETENTION_DAYS',
    remove: removeOldRequests,
  },
  {
    table: 'request_minutes',
    every: 'minute',
    rule: 'With the requests that it counts',
    setting: 'REQUEST_LOG_RETENTION_DAYS',
    remove: removeOldRequestMinutes,
  },
  {
    table: 'request_counts',
    every: 'minute',
    rule: 'With the requests that it counts',
    setting: 'REQUEST_LOG_RETENTION_DAYS',
    remove: removeOldRequestCounts,
  },
  {
    table: 'attempt_counts',
    every: 'minute',
    rule: '25 hours after the start of the period that it counts (5 minutes or an hour)',
    remove: removeOldAttemptCounts,
  },
  {
    table: 'export_chunks',
    every: 'minute',
    rule: 'An hour after the file has expired, which is 7 days after the export was completed',
    remove: removeExpiredFiles,
  },
  {
    table: 'exports',
    every: 'hour',
    rule: '90 days after the export was completed or failed',
    setting: 'EXPORT_RETENTION_DAYS',
    remove: removeOldExports,
  },
  {
    table: 'import_chunks',
    every: 'hour',
    rule:
      'An hour after the file of refused rows has expired, which is 7 days after the import ended. Uploads: after ' +
      'their import has ended, or after a dry run likewise',
    remove: removeImportChunks,
  },
  {
    table: 'imports',
    every: 'hour',
    rule: '90 days after the import was completed or failed',
    setting: 'EXPORT_RETENTION_DAYS',
    remove: removeOldImports,
  },
  {
    table: 'attempts',
    every: 'hour',
    rule: '30 days after the start of the attempt, unless its delivery is unfinished',
    setting: 'ATTEMPT_RETENTION_DAYS',
    remove: removeAttempts,
  },
  {
    table: 'events',
    every: 'hour',
    rule:
      '90 days after the event, unless one of its deliveries is unfinished. What updates changed, and from ' +
      'which IP address, stays as long, also after the deletion of the record',
    setting: 'EVENT_RETENTION_DAYS',
    remove: removeEvents,
  },
  {
    table: 'deliveries',
    every: 'hour',
    rule: 'With its event. A test delivery, which has no event: 90 days after its creation',
    setting: 'EVENT_RETENTION_DAYS',
    remove: removeDeliveries,
  },
  {
    table: 'bulk_jobs',
    every: 'hour',
    rule:
      '90 days after the job ended. The last job of a webhook that sent missed events stays until the ' +
      'webhook is next disabled, or deleted',
    setting: 'EVENT_RETENTION_DAYS',
    remove: removeEndedBulkJobs,
  },
  {
    table: 'webhooks',
    every: 'hour',
    rule:
      'When the webhook was deleted a day ago or earlier, and none of its deliveries and bulk jobs is left. ' +
      'The deletion itself erases the signing secrets',
    setting: 'EVENT_RETENTION_DAYS',
    remove: removeDeletedWebhooks,
  },
  {
    table: 'api_keys',
    every: 'hour',
    rule:
      '400 days after the revocation. A key that clients still send stays until its last logged request ' +
      'is deleted',
    setting: 'AUDIT_LOG_RETENTION_DAYS',
    remove: removeRevokedApiKeys,
  },
  {
    table: 'invitations',
    every: 'hour',
    rule: '30 days after the link expired, or when it is used or replaced',
    remove: removeExpiredInvitations,
  },
  {
    table: 'audit_log',
    every: 'hour',
    rule: '400 days after the entry',
    setting: 'AUDIT_LOG_RETENTION_DAYS',
    remove: removeOldAuditEntries,
  },
]

/** The tables without a rule, and why their rows stay. */
export const permanentTables: Record<string, string> = {
  account_deletions:
    'One row for each deleted account, without personal data: the ID, two timestamps and the number of rows',
  account_quotas: 'An operator sets them; deleted with the account',
  accounts: 'An operator deletes accounts',
  users:
    'Users are deactivated. They are deleted with their account, or when their invitation is withdrawn',
  participants: 'Clients and users delete records',
  participant_tags: 'Deleted with the participant',
  tasks: 'Clients and users delete records',
  jobs: 'Clients and users delete records',
  job_applications: 'Clients and users delete records',
  payments: 'Clients and users delete records',
  clock_spans: 'One row for each jump of the clock, and for each stop of more than a day',
  delivery_pauses: 'At most one row',
  held_notices: 'The next message to the Slack channel takes them, an hour after the last one',
  leases: 'One row for each kind of work that one node does for all nodes',
  migrations: 'One row for each migration',
  record_counts:
    'A few rows for each account and kind of record, and for each webhook; deleted with these',
  secret_keys: 'The check values of at most two keys',
  webhook_health: 'Deleted with the webhook',
  worker_sessions:
    'One row for each worker. The leader deletes the rows of workers that have ended',
  write_checks: 'One row',
}
