/** A form that makes something makes it once, however often it is sent: by a second click, a reload, or a browser that tries again. */
import { createHash, randomUUID } from 'node:crypto'
import { validate as isUuid } from 'uuid'
import type { WriteScope } from '../../records/database/scope.ts'
import { claimFormKey, storeCreatedId } from '../../records/idempotency-keys.ts'
import { type Html, html } from '../shared/html.ts'
import type { Visit } from './page.ts'

/** No field of the contract has a colon in its name. */
export const FORM_KEY = 'form:key'

/** A form has its key until something is made of it. Of those that send none, each makes something. */
export function formKey({ form }: Pick<Visit, 'form'>): string {
  return keyIn(form) ?? randomUUID()
}

export function formKeyField(key: string): Html {
  return html`<input type="hidden" name="${FORM_KEY}" value="${key}">`
}

/** Thrown where a form with the same key has made something before: nothing more is made. */
export class MadeBefore extends Error {
  readonly id: string
  /** Not what it was when it made that: somebody has gone back to it and typed something else. */
  readonly isOther: boolean
  constructor({ id, isOther }: { id: string; isOther: boolean }) {
    super('This form was sent before.')
    this.id = id
    this.isOther = isOther
  }
}

/** Said above a form that comes back with a new key. */
export const SENT_OTHERWISE =
  'This form was sent before with something else in it, and what it made is there. What you see here is not: send it again to make it, too.'

/** Makes something, in the transaction of `scope`, unless this form did so before: then throws `MadeBefore`. */
export async function once<T extends { id: string }>(
  { form, user, now }: Visit,
  scope: WriteScope,
  make: () => Promise<T>,
): Promise<T> {
  const key = keyIn(form)
  if (key === undefined) return make()
  const fingerprint = fingerprintOf(form)
  const before = await claimFormKey(scope, user.id, rowKey(key), fingerprint, now.getTime())
  if (before)
    throw new MadeBefore({ id: before.createdId, isOther: before.fingerprint !== fingerprint })
  const made = await make()
  await storeCreatedId(scope, user.id, rowKey(key), made.id)
  return made
}

/** Apart from the keys that the user's programs give. */
const rowKey = (key: string): string => `${FORM_KEY}:${key}`

function keyIn(form: URLSearchParams): string | undefined {
  const key = form.get(FORM_KEY)
  return key !== null && isUuid(key) ? key.toLowerCase() : undefined
}

function fingerprintOf(form: URLSearchParams): string {
  return createHash('sha256').update(form.toString()).digest('base64url')
}
