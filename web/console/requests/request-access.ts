/** Hides parts of logged requests. Bodies and queries can contain records, so module permissions
 *  apply. */
import { type OperationId, operations } from '../../../generated/operations.ts'
import { resources } from '../../../generated/resources.ts'
import type { RequestEntry } from '../../../records/request-log.ts'
import type { Module, User } from '../../../records/users.ts'
import { hasPermission } from '../page.ts'

/** The module of the operation's records, if the user may not read them: the bodies are hidden.
 *  Undefined if the user may see the bodies. */
export function findHiddenModule(user: User, operationId: string | null): Module | undefined {
  const resource = resources.find(({ operations }) =>
    Object.values(operations).some((id) => id === operationId),
  )
  return resource && !hasPermission(user, resource.module, 'read') ? resource.module : undefined
}

/** Whether the user may read every module, and therefore every query. */
export function canViewAllQueries(user: User): boolean {
  return resources.every(({ module }) => hasPermission(user, module, 'read'))
}

/** The operations whose bodies the user may see. */
export function visibleOperations(user: User): OperationId[] {
  const ids = Object.keys(operations) as OperationId[]
  return ids.filter((id) => findHiddenModule(user, id) === undefined)
}

/** Whether the query is hidden from the user. Without an operation, the path is unknown: its query
 *  may contain data of any module. */
export function isQueryHidden(user: User, operationId: string | null): boolean {
  return operationId === null
    ? !canViewAllQueries(user)
    : findHiddenModule(user, operationId) !== undefined
}

/** Removes the query from the path of the request if the query is hidden from the user. */
export function redactQuery<T extends RequestEntry>(user: User, request: T): T {
  return isQueryHidden(user, request.operationId)
    ? { ...request, path: request.path.replace(/\?.*/s, '?…') }
    : request
}
