import { InvalidInput } from '../errors.ts'
import type { components } from '../generated/openapi.ts'
import type { Body } from '../generated/operations.ts'
import { nextUpdatedAt } from './changes.ts'
import { uniqueViolation } from './database/errors.ts'
import type { WriteScope } from './database/scope.ts'
import { newId } from './ids.ts'
import { type Listing, toTimestamp } from './list.ts'
import { clearReferences, countNoun, countRows, toExternalIdTaken } from './references.ts'
import { containing, foldText } from './search.ts'

export type Participant = components['schemas']['Participant']
type NewParticipant = Body<'createParticipant'>

interface ParticipantRow {
  id: string
  full_name: string
  email: string | null
  phone: string | null
  status: Participant['status']
  tags: string
  external_id: string | null
  created_at: number
  updated_at: number
}

function fromRow(row: ParticipantRow): Participant {
  return {
    id: row.id,
    full_name: row.full_name,
    email: row.email,
    phone: row.phone,
    status: row.status,
    tags: JSON.parse(row.tags),
    external_id: row.external_id,
    created_at: toTimestamp(row.created_at),
    updated_at: toTimestamp(row.updated_at),
  }
}

export const participantListing: Listing<ParticipantRow, Participant> = {
  table: 'participants',
  fromRow,
  nullable: ['email'],
  filters: {
    email: (value) => ({ sql: 'participants.email_key = ?', bindings: [value.toLowerCase()] }),
    search: (value, scope) => containing(scope, 'participants', value),
    tag: (value, { accountId }) => ({
      sql: `participants.id in (
        select participant_id from participant_tags where account_id = ? and tag = ?
      )`,
      bindings: [accountId, value],
    }),
  },
}

/** Columns for unique keys and search. */
function searchColumns({ full_name, email }: Pick<Participant, 'full_name' | 'email'>) {
  return {
    email_key: email?.toLowerCase() ?? null,
    search_text: foldText(`${full_name}\n${email ?? ''}`),
  }
}

/** Throws `InvalidInput` when the email or the external ID is taken. */
export async function insertParticipant(
  scope: WriteScope,
  input: NewParticipant,
  now: Date,
): Promise<Participant> {
  const row: ParticipantRow = {
    id: newId(),
    full_name: input.full_name,
    email: input.email ?? null,
    phone: input.phone ?? null,
    status: input.status ?? 'active',
    tags: JSON.stringify(input.tags ?? []),
    external_id: input.external_id ?? null,
    created_at: now.getTime(),
    updated_at: now.getTime(),
  }
  const participant = fromRow(row)
  await scope.insert('participants', { ...row, ...searchColumns(participant) }, toTaken)
  await insertTags(scope, participant)
  return participant
}

/** Throws `InvalidInput` when the email or the external ID is taken. */
export async function updateParticipantFields(
  scope: WriteScope,
  current: Participant,
  changes: Partial<Participant>,
  now: Date,
): Promise<Participant> {
  const changed = { ...current, ...changes }
  const { tags, ...columns } = changes
  const updated_at = nextUpdatedAt(current, now)
  const row = {
    ...columns,
    ...(tags && { tags: JSON.stringify(tags) }),
    ...searchColumns(changed),
    updated_at,
  }
  const update = scope.rows('participants').where({ id: current.id }).update(row)
  await update.catch((error: unknown) => {
    throw toTaken(error)
  })
  if (tags) {
    await scope.rows('participant_tags').where({ participant_id: current.id }).delete()
    await insertTags(scope, changed)
  }
  return { ...changed, updated_at: toTimestamp(updated_at) }
}

async function insertTags(scope: WriteScope, { id, tags }: Participant): Promise<void> {
  if (tags.length === 0) return
  await scope.insert(
    'participant_tags',
    tags.map((tag) => ({ participant_id: id, tag })),
  )
}

function toTaken(error: unknown): unknown {
  return uniqueViolation(error)?.includes('email_key')
    ? new InvalidInput({ email: ['is used by another participant.'] })
    : toExternalIdTaken('participant')(error)
}

/** Deletes the participant, and sets `participant_id` of their tasks to null. Returns the IDs of
 *  the tasks. Throws `InvalidInput` while the participant has applications or payments. */
export async function deleteParticipantRow(
  scope: WriteScope,
  id: string,
  now: Date,
): Promise<{ tasks: string[] }> {
  const applications = await countRows(scope, 'job_applications', { participant_id: id })
  const payments = await countRows(scope, 'payments', { participant_id: id })
  if (applications + payments > 0) {
    const blocking = []
    if (applications > 0) blocking.push(countNoun(applications, 'job application'))
    if (payments > 0) blocking.push(countNoun(payments, 'payment'))
    throw new InvalidInput({
      participant: [
        `still has ${blocking.join(' and ')}. Delete them first, or archive the participant.`,
      ],
    })
  }
  const tasks = await clearReferences(scope, { table: 'tasks', column: 'participant_id' }, id, now)
  await scope.rows('participants').where({ id }).delete()
  return { tasks }
}
