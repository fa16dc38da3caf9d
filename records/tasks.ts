import { InvalidInput } from '../errors.ts'
import type { components } from '../generated/openapi.ts'
import type { Body } from '../generated/operations.ts'
import { assertTransition, nextUpdatedAt, type Transitions } from './changes.ts'
import type { WriteScope } from './database/scope.ts'
import { newId } from './ids.ts'
import { type Listing, referred, toMillis, toNullableTimestamp, toTimestamp } from './list.ts'
import { participantListing } from './participants.ts'
import { assertReference, clearReferences, toExternalIdTaken, withStoredIds } from './references.ts'

export type Task = components['schemas']['Task']
type NewTask = Body<'createTask'>

const TRANSITIONS: Transitions<Task['status']> = {
  open: ['in_progress', 'completed', 'cancelled'],
  in_progress: ['open', 'completed', 'cancelled'],
  completed: [],
  cancelled: [],
}

interface TaskRow {
  id: string
  title: string
  description: string
  status: Task['status']
  participant_id: string | null
  due_at: number | null
  completed_at: number | null
  external_id: string | null
  created_at: number
  updated_at: number
}

function fromRow(row: TaskRow): Task {
  return {
    id: row.id,
    title: row.title,
    description: row.description,
    status: row.status,
    participant_id: row.participant_id,
    due_at: toNullableTimestamp(row.due_at),
    completed_at: toNullableTimestamp(row.completed_at),
    external_id: row.external_id,
    created_at: toTimestamp(row.created_at),
    updated_at: toTimestamp(row.updated_at),
  }
}

export const taskListing: Listing<TaskRow, Task> = {
  table: 'tasks',
  fromRow,
  nullable: ['due_at', 'completed_at'],
  includes: { participant: referred('participant_id', participantListing) },
}

/** The contract accepts the years from 1000 to 2999, and the API returns times in UTC. A time with
 *  an offset may be in another year in UTC. Without these limits, the API could return a time that
 *  it does not accept. */
const FIRST_MILLIS = Date.UTC(1000, 0)
const END_MILLIS = Date.UTC(3000, 0)

/** Throws `InvalidInput` for a time out of bounds. */
export function assertDueTime({ due_at }: { due_at?: string | null }): void {
  if (!due_at) return
  const millis = toMillis(due_at)
  if (millis < FIRST_MILLIS || millis >= END_MILLIS)
    throw new InvalidInput({ due_at: ['must be in the years 1000 to 2999, in UTC.'] })
}

const toTaken = toExternalIdTaken('task')

/** Throws `InvalidInput` for an unknown participant, or an external ID that is taken. */
export async function insertTask(scope: WriteScope, input: NewTask, now: Date): Promise<Task> {
  const { participant_id = null } = withStoredIds(input)
  await assertReference(scope, 'participant_id', 'participants', participant_id)
  const row: TaskRow = {
    id: newId(),
    title: input.title,
    description: input.description ?? '',
    status: input.status ?? 'open',
    participant_id,
    due_at: input.due_at ? toMillis(input.due_at) : null,
    completed_at: null,
    external_id: input.external_id ?? null,
    created_at: now.getTime(),
    updated_at: now.getTime(),
  }
  await scope.insert('tasks', row, toTaken)
  return fromRow(row)
}

/** Throws `InvalidInput` for a status that cannot follow the current one, an unknown participant, or
 *  an external ID that is taken. */
export async function updateTaskFields(
  scope: WriteScope,
  current: Task,
  changes: Partial<Task>,
  now: Date,
): Promise<Task> {
  assertTransition(TRANSITIONS, current.status, changes.status)
  await assertReference(scope, 'participant_id', 'participants', changes.participant_id)
  const row = {
    ...changes,
    ...(changes.due_at && { due_at: toMillis(changes.due_at) }),
    ...(changes.status === 'completed' && { completed_at: now.getTime() }),
    updated_at: nextUpdatedAt(current, now),
  }
  const update = scope.rows('tasks').where({ id: current.id }).update(row).returning('*')
  const [updated] = await update.catch((error: unknown) => {
    throw toTaken(error)
  })
  return fromRow(updated as TaskRow)
}

/** Deletes the task, and sets `task_id` of its payments to null. Returns the IDs of the
 *  payments. */
export async function deleteTaskRow(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<{ payments: string[] }> {
  const payments = await clearReferences(scope, { table: 'payments', column: 'task_id' }, id, now)
  await scope.rows('tasks').where({ id }).delete()
  return { payments }
}
