/** What the contract declares, but the code and the database do not have. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isList, tableOf } from '../generate/resources.ts'
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { dereference } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import { type Finding, type Located, type Path, type Sources, valueAt } from '../model/source.ts'
import { isServerStatus } from './responses.ts'

/** Without handlers/ and records/, there is nothing to find. */
export async function findWithoutCode(root: string, contract: Contract): Promise<Finding[]> {
  const readText = (file: string, fallback: string): Promise<string> =>
    readFile(join(root, file), 'utf8').catch(() => fallback)
  const tables: Tables = JSON.parse(await readText('records/schema.sqlite.json', '{}'))
  const statuses = contract.operations.map(async (operation) => {
    const handler = await readText(`handlers/${operation.id}.ts`, '')
    if (handler === '') return []
    const imports = [...handler.matchAll(/ from '(\.[^']+)'/g)].map(([, file]) =>
      readText(join('handlers', String(file)), ''),
    )
    return findUngivenStatuses(operation, [handler, ...(await Promise.all(imports))].join('\n'))
  })
  return [...(await Promise.all(statuses)).flat(), ...findNeverNull(contract, tables)]
}

/** Statuses that neither the server gives nor `code`: the handler, and the files that it imports. A
 *  handler without an implementation gives none yet. */
function findUngivenStatuses(operation: Operation, code: string): Finding[] {
  if (code.includes(`notImplemented('${operation.id}')`)) return []
  const { id, place, responses, success } = operation
  return responses
    .filter((response) => response !== success && !isServerStatus(operation, response.status))
    .filter(({ status }) => !new RegExp(`\\bStatusError\\(\\s*${status}\\b`).test(code))
    .map(({ status }) => ({
      source: place.source,
      path: [...place.path, 'responses', String(status)],
      problem: `handlers/${id}.ts throws no StatusError with ${status}: throw it, or remove the status here`,
    }))
}

type Tables = Record<string, { columns: Record<string, string> } | undefined>

/** Fields of records that can be null, although their column cannot. */
function findNeverNull(contract: Contract, tables: Tables): Finding[] {
  const { sources, operations } = contract
  const found = operations
    .filter((operation) => isList(contract, operation))
    .flatMap(({ path, success }) => {
      const table = tableOf(path.split('/').at(-1) ?? '')
      const columns = tables[table]?.columns ?? {}
      const body = success.content['application/json']?.schema as Located<Schema>
      const record = locate(sources, locate(sources, body, ['properties', 'data']), ['items'])
      return Object.keys(record.value?.properties ?? {})
        .filter((name) => columns[name]?.includes('not null'))
        .map((name) => ({ table, name, field: locate(sources, record, ['properties', name]) }))
    })
  return found
    .filter(({ field }) => field.value.nullable)
    .map(({ table, name, field: { source, path } }) => ({
      source,
      path: [...path, 'nullable'],
      problem: `${name} can be null, but the column ${table}.${name} cannot: remove nullable, or change the column in a migration`,
    }))
}

/** The schema below the place, with its reference followed. */
function locate(sources: Sources, schema: Located<Schema>, steps: Path): Located<Schema> {
  const { source, path, value } = dereference(sources, schema)
  const child = { source, path: [...path, ...steps], value: valueAt(value, steps) as Schema }
  return child.value ? dereference(sources, child) : child
}
