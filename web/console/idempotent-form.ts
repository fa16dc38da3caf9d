/** Forms that create at most one record, even when they are sent again by a second click or a reload. */
import { createHash, randomUUID } from 'node:crypto'
import { StatusError } from '../../errors.ts'
import type { WriteScope } from '../../records/database/scope.ts'
import { insertIdempotencyKey, storeResponse } from '../../records/idempotency-keys.ts'
import type { Visit } from './page.ts'
import { parseId } from './query.ts'

/** The contract has no field with a colon in its name. */
export const FORM_KEY = 'form:key'

/** The key that the form was sent with. A new form, and a form resent with changes, get a new key. */
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

/** Shown above a form that was sent again with changes. */
export const RESENT_WITH_CHANGES =
  'This form has already been sent with different values, and that record exists. ' +
  'Send it again to create another one.'

/** Runs `create` in the transaction of `scope`, as its first statements.
 *  Throws `AlreadyCreated` when this form created a record before, and 409 while it is being sent.
 *  A form without a key always creates a record. */
export async function createOnce<T extends { id: string }>(
  { form, user, now }: Visit,
  { trx }: WriteScope,
  create: () => Promise<T>,
): Promise<T> {
  const key = parseId(form.get(FORM_KEY))
  if (key === undefined) return create()
  const request = { userId: user.id, key: toStoredKey(key), fingerprint: hashForm(form) }
  const state = await insertIdempotencyKey(trx, request, now.getTime())
  if (state.kind === 'in_flight')
    throw new StatusError(409, 'This form is still being sent. Try again in a few seconds.')
  if (state.kind === 'other_request') throw new AlreadyCreated()
  if (state.kind === 'completed') throw new AlreadyCreated(state.response.body)
  const created = await create()
  // The response to a form leads to the record, so the ID of the record stands for it.
  await storeResponse(trx, request, { status: 303, headers: {}, body: created.id })
  return created
}

/** The prefix keeps form keys apart from the Idempotency-Keys of API requests. */
const toStoredKey = (key: string): string => `${FORM_KEY}:${key}`

function hashForm(form: URLSearchParams): string {
  return createHash('sha256').update(form.toString()).digest('base64url')
}
