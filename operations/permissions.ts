import { StatusError } from '../errors.ts'
import type { OperationRow } from '../generated/operations.ts'
import type { Principal } from '../records/api-keys.ts'

/** Throws 403 unless the API key's access level and its owner's permissions allow the operation. */
export function assertPermitted(
  { access, permission }: OperationRow,
  { accessLevel, finance, managesWebhooks }: Principal,
): void {
  if (access === 'write' && accessLevel !== 'full_access')
    throw new StatusError(403, 'This API key is Read Only.')
  if (permission === 'webhooks' && !managesWebhooks)
    throw new StatusError(403, 'The owner of this API key may not manage webhooks.')
  if (permission !== 'finance') return
  const isAllowed = finance === 'write' || (finance === 'read' && access === 'read')
  if (!isAllowed)
    throw new StatusError(
      403,
      `The owner of this API key has no Finance permission to ${access} payments.`,
    )
}
