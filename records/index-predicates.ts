/** Predicates of partial indexes. A query that repeats the predicate can use the index in both
 *  databases. test/records/schema.test.ts compares the predicates with the catalogues. */

/** `deliveries_undelivered` and `deliveries_undelivered_by_webhook` */
export const UNDELIVERED = "state <> 'delivered'"

/** `deliveries_in_order` */
export const UNFINISHED_IN_ORDER = "ordering_key is not null and state in ('pending', 'retrying')"

/** `deliveries_unqueued`: the backlog by time. Differs from `UNQUEUED_BY_WEBHOOK`, so that a query
 *  for the backlog by webhook cannot use this index. */
export const UNQUEUED = 'queued_at is null and next_attempt_at > 0'

/** `deliveries_waiting`: the backlog by webhook. */
export const UNQUEUED_BY_WEBHOOK = 'queued_at is null and next_attempt_at is not null'

/** `bulk_jobs_running` */
export const RUNNING_BULK_JOBS = "state = 'running'"

/** `exports_unfinished` and `imports_unfinished` */
export const UNFINISHED_FILE_JOBS = "status in ('queued', 'processing')"

/** `tasks_unfinished` */
export const UNFINISHED_TASKS = "status in ('open', 'in_progress')"
