/** What a user of records may want to do next. Each list is one statement, which reads only the rows
 *  that it returns, by an index. */
import type { Scope } from '../database/scope.ts'
import { select } from '../database/statements.ts'
import { UNFINISHED_TASKS } from '../index-predicates.ts'
import { DAY_MS } from '../time-units.ts'

const MAX_ROWS = 6
export const DUE_SOON_DAYS = 7

export interface TaskToDo {
  id: string
  title: string
  status: 'open' | 'in_progress'
  /** Epoch milliseconds, like all times of records. */
  due_at: number | null
  created_at: number
}

const TASK_COLUMNS = 'id, title, status, due_at, created_at'

/** Unfinished tasks that are overdue or due within `DUE_SOON_DAYS`, the most urgent first. */
export function listDueTasks(scope: Scope, now: Date): Promise<TaskToDo[]> {
  return select<TaskToDo>(
    scope.sql,
    `select ${TASK_COLUMNS} from tasks
     where account_id = ? and due_at < ? and ${UNFINISHED_TASKS}
     order by due_at, id
     limit ${MAX_ROWS}`,
    [scope.accountId, now.getTime() + DUE_SOON_DAYS * DAY_MS],
  )
}

/** Tasks that nobody has begun, newest first. */
export function listOpenTasks(scope: Scope): Promise<TaskToDo[]> {
  return select<TaskToDo>(
    scope.sql,
    `select ${TASK_COLUMNS} from tasks
     where account_id = ? and status = 'open'
     order by id desc
     limit ${MAX_ROWS}`,
    [scope.accountId],
  )
}

export interface NewApplication {
  id: string
  job: string
  participant: string
  screening_outcome: string | null
  created_at: number
}

/** Applications that wait for a decision, newest first. */
export function listNewApplications(scope: Scope): Promise<NewApplication[]> {
  return select<NewApplication>(
    scope.sql,
    `select found.id, found.screening_outcome, found.created_at, jobs.title as job,
       participants.full_name as participant
     from (
       select account_id, id, job_id, participant_id, screening_outcome, created_at
       from job_applications
       where account_id = ? and status = 'submitted'
       order by id desc
       limit ${MAX_ROWS}
     ) as found
     join jobs on jobs.account_id = found.account_id and jobs.id = found.job_id
     join participants on participants.account_id = found.account_id
       and participants.id = found.participant_id
     order by found.id desc`,
    [scope.accountId],
  )
}

export interface RecentChange {
  event_type: string
  resource_type: string
  resource_id: string
  /** Null: no user has caused the change, or the user was deleted. */
  user_name: string | null
  created_at: number
}

/** The newest events of these types. Each part of the statement reads the newest of one type. */
export async function listRecentChanges(
  scope: Scope,
  eventTypes: string[],
): Promise<RecentChange[]> {
  if (eventTypes.length === 0) return []
  const parts = eventTypes.map(
    () => `select * from (
       select id, event_type, resource_type, resource_id, user_id, created_at
       from events
       where account_id = ? and event_type = ?
       order by id desc
       limit ${MAX_ROWS}
     ) as of_type`,
  )
  return select<RecentChange>(
    scope.sql,
    `select found.event_type, found.resource_type, found.resource_id, found.created_at,
       users.full_name as user_name
     from (
       select * from (${parts.join(' union all ')}) as of_types
       order by id desc
       limit ${MAX_ROWS}
     ) as found
     left join users on users.account_id = ? and users.id = found.user_id
     order by found.id desc`,
    [...eventTypes.flatMap((type) => [scope.accountId, type]), scope.accountId],
  )
}
