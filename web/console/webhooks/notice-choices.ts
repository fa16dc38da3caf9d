import type { operationalTypes } from '../../../generated/events.ts'
import type { Choice } from '../form-fields.ts'

const LABELS: Record<keyof typeof operationalTypes, string> = {
  'muster.webhook_failing': 'A webhook is failing',
  'muster.webhook_degraded': 'A webhook is degraded',
  'muster.webhook_disabled': 'A webhook was disabled',
  'muster.webhook_recovered': 'A webhook has recovered',
  'muster.bulk_job_ended': 'A bulk job has ended',
  'muster.import_ended': 'An import has ended',
  'muster.quota_reached': '80 % of a quota is used',
}

/** What happens to the webhooks, jobs and quotas of the account. */
export const noticeChoices = Object.entries(LABELS).map(
  ([value, text]): Choice => ({ value, label: text }),
)
