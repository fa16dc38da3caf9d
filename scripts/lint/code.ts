/** What the contract declares, but the code and the database do not have. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { listPromises } from '../contract/coverage/promises.ts'
import { isList, tableOf } from '../generate/resources.ts'
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import type { Finding } from '../model/source.ts'
import { findUnsupportedParts } from '../model/supported.ts'
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
  const tableOfList = new Map(
    contract.operations
      .filter((operation) => isList(contract, operation))
      .map(({ id, path }) => [id, tableOf(path.split('/').at(-1) ?? '')]),
  )
  // A schema that contains itself has promises without end.
  if (findUnsupportedParts(contract).length > 0) return []
  const nullable = listPromises(contract).filter(({ claim }) => claim === 'response nullable')
  return nullable.flatMap(({ uses, place: { source, path } }) =>
    uses.flatMap(({ subject, name }) => {
      const table = tableOfList.get(subject) ?? ''
      const column = name.replace(/^data\.\*\./, '')
      if (!tables[table]?.columns[column]?.includes('not null')) return []
      const problem = `${column} can be null, but the column ${table}.${column} cannot: remove nullable, or change the column in a migration`
      return [{ source, path: [...path, 'nullable'], problem }]
    }),
  )
}
