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

/** The name of the input with the key of the form. No field of the contract has a colon in its
 *  name, so none has this name. */
export const FORM_KEY = 'form:key'

/** The key for the next submission of the form: the key in `form`, or a new key if it has none.
 *  After `RESENT_WITH_CHANGES` the key is new, so that the form creates another record. */
export function formKey({ form }: Pick<Visit, 'form'>, problem?: string): string {
  const key = problem === RESENT_WITH_CHANGES ? undefined : parseId(form.get(FORM_KEY))
  return key ?? randomUUID()
}

/** The key of a form that is one button. */
export function newFormKey(): Record<typeof FORM_KEY, string> {
  return { [FORM_KEY]: randomUUID() }
}

/** A form with this key has created a record already. */
export class AlreadyCreated extends Error {
  /** The ID of the record. Empty if the form has different input. */
  readonly id: string
  /** The user changed the form after it had created the record. */
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

/** The key and a hash of the form. Undefined for a form without a key: each submission of such a
 *  form creates a record. */
export function formRequest({ form, user }: Visit): KeyedRequest | undefined {
  const key = parseId(form.get(FORM_KEY))
  return key === undefined
    ? undefined
    : {
        accountId: user.accountId,
        userId: user.id,
        key: toStoredKey(key),
        fingerprint: hashForm(form),
      }
}

/** Runs `create` in a transaction, which has locked the user. Throws `AlreadyCreated` when this form
 *  has created a record. */
export async function createOnce<T extends { id: string }>(
  visit: Visit,
  create: (scope: WriteScope) => Promise<T>,
): Promise<T> {
  const request = formRequest(visit)
  if (!request) return visit.change(create)
  const outcome = await visit.change(async (scope) => {
    const state = await findKeyState(scope.trx, request, visit.now.getTime())
    const stored = await takeKey(scope.trx, request, state).catch(throwFormError)
    if (stored) return { stored }
    const created = await create(scope)
    await insertIdempotencyKey(scope.trx, request, toStoredForm(created), visit.now.getTime())
    return { created }
  })
  // After the commit: see `takeKey`.
  if (outcome.stored) throw new AlreadyCreated(outcome.stored.body)
  return outcome.created
}

/** Runs `command` in a transaction, unless this form has run it before: then the first request did
 *  everything. */
export async function commandOnce(
  visit: Visit,
  command: (scope: WriteScope) => Promise<{ id: string }>,
): Promise<void> {
  try {
    await createOnce(visit, command)
  } catch (error) {
    if (!(error instanceof AlreadyCreated)) throw error
  }
}

/** Returns the response to a form as the console stores it. The console redirects to the new record,
 *  so it stores only the ID of the record as the body. */
export function toStoredForm(created: unknown): StoredResponse {
  return { status: 303, headers: {}, body: (created as { id: string }).id }
}

/** Throws the error. An error about an Idempotency-Key becomes an error about the form. */
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
