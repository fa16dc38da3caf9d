/** Hides parts of logged requests. Bodies and queries can contain records, so module permissions
 *  apply. */
import { resources } from '../../../generated/resources.ts'
import type { RequestEntry } from '../../../records/request-log.ts'
import type { Module, User } from '../../../records/users.ts'
import { hasPermission } from '../page.ts'

/** The module whose records the bodies contain, if the user may not read it. */
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

/** A request to an unknown path may have been meant for any module. */
export function isQueryHidden(user: User, operationId: string | null): boolean {
  return operationId === null
    ? !canViewAllQueries(user)
    : findHiddenModule(user, operationId) !== undefined
}

/** Hides the query from the path if the user may not see it. */
export function redactQuery<T extends RequestEntry>(user: User, request: T): T {
  return isQueryHidden(user, request.operationId)
    ? { ...request, path: request.path.replace(/\?.*/s, '?…') }
    : request
}
