/** Forms that create at most one record, even when they are sent again by a second click or a
 *  reload. */
import { createHash, randomUUID } from 'node:crypto'
import { StatusError } from '../../errors.ts'
import { KeyOfOtherRequest, StillInProgress, takeKey } from '../../operations/idempotency.ts'
import type { WriteScope } from '../../records/database/scope.ts'
import {
  findKeyState,
  insertIdempotencyKey,
  type KeyedRequest,
  type StoredResponse,
} from '../../records/idempotency-keys.ts'
import type { Visit } from './page.ts'
import { parseId } from './query.ts'

/** The contract has no field with a colon in its name. */
export const FORM_KEY = 'form:key'

/** The key that the form was sent with. A new form, and a form resent with changes, get a new
 *  key. */
export function formKey({ form }: Pick<Visit, 'form'>, problem?: string): string {
  const key = problem === RESENT_WITH_CHANGES ? undefined : parseId(form.get(FORM_KEY))
  return key ?? randomUUID()
}

/** A form with this key has created a record already. */
export class AlreadyCreated extends Error {
  readonly id: string
  /** The user changed the form after it created the record. Then the ID is empty. */
  readonly hasDifferentInput: boolean
  constructor(id = '') {
    super('This form has already been sent.')
    this.id = id
    this.hasDifferentInput = id === ''
  }
}

export const RESENT_WITH_CHANGES =
  'This form has already been sent with different values, and that record exists. ' +
  'Send it again to create another one.'

/** Undefined: a form without a key always creates a record. */
export function formRequest({ form, user }: Visit): KeyedRequest | undefined {
  const key = parseId(form.get(FORM_KEY))
  return key === undefined
    ? undefined
    : { userId: user.id, key: toStoredKey(key), fingerprint: hashForm(form) }
}

/** Runs `create` in the transaction of `scope`, which has locked the user. Throws `AlreadyCreated`
 *  when this form created a record before, and 409 while it is being sent. */
export async function createOnce<T extends { id: string }>(
  visit: Visit,
  { trx }: WriteScope,
  create: () => Promise<T>,
): Promise<T> {
  const request = formRequest(visit)
  if (!request) return create()
  const state = await findKeyState(trx, request, visit.now.getTime())
  const stored = await takeKey(trx, request, state).catch(throwFormError)
  if (stored) throw new AlreadyCreated(stored.body)
  const created = await create()
  await insertIdempotencyKey(trx, request, toStoredForm(created), visit.now.getTime())
  return created
}

/** The response to a form leads to the record, so the ID of the record stands for it. */
export function toStoredForm(created: unknown): StoredResponse {
  return { status: 303, headers: {}, body: (created as { id: string }).id }
}

/** Throws the form's error in place of the API's. */
export function throwFormError(error: unknown): never {
  if (error instanceof StillInProgress)
    throw new StatusError(409, 'This form is still being sent. Try again in a few seconds.')
  throw error instanceof KeyOfOtherRequest ? new AlreadyCreated() : error
}

/** The prefix keeps form keys apart from the Idempotency-Keys of API requests. */
const toStoredKey = (key: string): string => `${FORM_KEY}:${key}`

function hashForm(form: URLSearchParams): string {
  return createHash('sha256').update(form.toString()).digest('base64url')
}
