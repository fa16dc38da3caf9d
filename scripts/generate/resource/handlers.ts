/** The source text of the handlers of a resource. */
import type { Operation } from '../../model/operations.ts'
import type { Resource } from './resource.ts'

/** The source text by file path. */
export function renderHandlers(resource: Resource): Record<string, string> {
  const files: [Operation | undefined, (resource: Resource, id: string, emit: string) => string][] =
    [
      [resource.list, renderList],
      [resource.create, renderCreate],
      [resource.get, renderGet],
      [resource.update, renderUpdate],
      [resource.delete, renderDelete],
    ]
  return Object.fromEntries(
    files.flatMap(([operation, render]) =>
      operation ? [[pathOf(operation), render(resource, operation.id, eventOf(operation))]] : [],
    ),
  )
}

const pathOf = ({ id }: Operation): string => `handlers/${id}.ts`

const EVENT_OF_METHOD: Record<string, string> = {
  post: 'created',
  patch: 'updated',
  delete: 'deleted',
}

/** The event that the operation emits for its method, for example `venue.created` for POST. Empty
 *  if there is none. */
export function eventOf({ method, emits }: Operation): string {
  return emits.find((type) => type.endsWith(`.${EVENT_OF_METHOD[method]}`)) ?? ''
}

const emitLine = (type: string, id: string): string =>
  type === '' ? '' : `\n  await emit('${type}', ${id})`

const withEmit = (type: string, names: string): string => (type === '' ? names : `${names}, emit`)

function renderList({ slug, typeName, variable }: Resource, id: string): string {
  return `import { operations } from '../generated/operations.ts'
import { type ListPage, listPage } from '../records/list.ts'
import { type ${typeName}, ${variable}Listing } from '../records/${slug}.ts'
import type { Call } from './call.ts'

export async function ${id}(call: Call<'${id}'>): Promise<ListPage<${typeName}>> {
  const { scope, query } = call
  return listPage(scope, ${variable}Listing, operations.${id}, query)
}
`
}

function renderCreate({ slug, typeName, variable }: Resource, id: string, event: string): string {
  return `import { insert${typeName}, type ${typeName} } from '../records/${slug}.ts'
import type { Call } from './call.ts'

export async function ${id}(call: Call<'${id}'>): Promise<${typeName}> {
  const { ${withEmit(event, 'scope, body, now')} } = call
  const ${variable} = await insert${typeName}(scope, body, now)${emitLine(event, `${variable}.id`)}
  return ${variable}
}
`
}

function renderGet(resource: Resource, id: string): string {
  const { slug, typeName, variable, idParameter, noun } = resource
  return `import { assertFound } from '../errors.ts'
import { findRecord } from '../records/list.ts'
import { type ${typeName}, ${variable}Listing } from '../records/${slug}.ts'
import type { Call } from './call.ts'

export async function ${id}(call: Call<'${id}'>): Promise<${typeName}> {
  const ${variable} = await findRecord(call.scope, ${variable}Listing, call.path.${idParameter})
  assertFound(${variable}, '${noun}')
  return ${variable}
}
`
}

const renderFindForUpdate = ({ variable, idParameter, noun }: Resource): string =>
  `const current = await findRecord(scope, ${variable}Listing, path.${idParameter}, { forUpdate: true })
  assertFound(current, '${noun}')
  assertMatch(current)`

function renderUpdate(resource: Resource, id: string, event: string): string {
  const { slug, typeName, variable } = resource
  return `import { assertFound } from '../errors.ts'
import { findChanges } from '../records/changes.ts'
import { findRecord } from '../records/list.ts'
import { type ${typeName}, ${variable}Listing, update${typeName}Fields } from '../records/${slug}.ts'
import type { Call } from './call.ts'

export async function ${id}(call: Call<'${id}'>): Promise<${typeName}> {
  const { scope, path, body, now, ${event && 'emitUpdate, '}assertMatch } = call
  ${renderFindForUpdate(resource)}

  const changes = findChanges(current, body)
  if (changes === undefined) return current
  const updated = await update${typeName}Fields(scope, current, changes, now)${
    event && `\n  await emitUpdate('${event}', current, updated)`
  }
  return updated
}
`
}

function renderDelete(resource: Resource, id: string, event: string): string {
  const { slug, typeName, variable } = resource
  return `import { assertFound } from '../errors.ts'
import { findRecord } from '../records/list.ts'
import { delete${typeName}Row, ${variable}Listing } from '../records/${slug}.ts'
import type { Call } from './call.ts'

export async function ${id}(call: Call<'${id}'>): Promise<void> {
  const { ${withEmit(event, 'scope, path')}, assertMatch } = call
  ${renderFindForUpdate(resource)}
  await delete${typeName}Row(scope, current.id)${emitLine(event, 'current.id')}
}
`
}
