import { StatusError } from '../errors.ts'
import type { OperationRow } from '../generated/operations.ts'
import type { Principal } from '../records/api-keys.ts'

/** Throws 403 unless the API key's access level and its owner's permissions allow the operation. */
export function assertPermitted(
  operation: OperationRow,
  { accessLevel, finance }: Principal,
): void {
  if (operation.access === 'write' && accessLevel !== 'full_access')
    throw new StatusError(403, 'This API key is Read Only.')
  if (operation.permission !== 'finance') return
  const isAllowed = finance === 'write' || (finance === 'read' && operation.access === 'read')
  if (!isAllowed)
    throw new StatusError(
      403,
      `The owner of this API key has no Finance permission to ${operation.access} payments.`,
    )
}
