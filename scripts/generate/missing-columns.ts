/** Finds the filters and sorts that the database has no column for: requests that use them would
 *  get 500. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Contract } from '../model/contract.ts'
import type { Operation, Parameter } from '../model/operations.ts'
import { inlineReferences } from '../model/references.ts'
import { lineOf, type Place } from '../model/source.ts'
import type { Remark } from '../report/result.ts'
import { fieldOf } from './resource/query.ts'
import { filterName, isList, tableOf } from './resources.ts'

/** The schema of the database after all migrations. */
const SCHEMA_FILE = 'records/schema.sqlite.json'

type Tables = Record<string, { columns: Record<string, string> } | undefined>

/** A remark for each filter and sort without a column. Leaves out filters that a file of records/
 *  defines, and lists whose table does not exist yet. Without records/, no table exists. */
export async function findMissingColumns(root: string, contract: Contract): Promise<Remark[]> {
  const tables: Tables = JSON.parse(await readText(root, SCHEMA_FILE, '{}'))
  const remarks = contract.operations
    .filter((operation) => isList(contract, operation))
    .map(async (operation): Promise<Remark[]> => {
      const name = operation.path.split('/').at(-1) ?? ''
      const table = tableOf(name)
      const columns = tables[table]?.columns
      if (!columns) return []
      const file = `records/${name}.ts`
      const code = await readText(root, file, '')
      return listColumns(contract, operation)
        .filter(({ column, filter }) => !(column in columns || definesFilter(code, filter)))
        .map(({ part, column, filter, place }) => ({
          file: place.source.file,
          line: lineOf(place),
          message:
            `${part} of ${operation.id} has no column ${table}.${column}: add it in a migration and run ` +
            `"npm run update-schema"${filter ? `, or write the filter in ${file}` : ''}`,
        }))
    })
  return (await Promise.all(remarks)).flat()
}

function readText(root: string, file: string, fallback: string): Promise<string> {
  return readFile(join(root, file), 'utf8').catch(() => fallback)
}

interface Column {
  /** For example `filter[due_after]` or `sort=due_at`. */
  part: string
  column: string
  /** For example `due_after`. Undefined for a sort. */
  filter: string | undefined
  place: Place
}

function listColumns({ sources }: Contract, { parameters }: Operation): Column[] {
  return parameters.flatMap(({ name, place, schema }: Parameter): Column[] => {
    const filter = filterName(name)
    if (filter !== undefined) return [{ part: name, column: fieldOf(filter), filter, place }]
    if (name !== 'sort') return []
    const fields = (inlineReferences(sources, schema).items?.enum ?? []).map(String)
    return fields
      .filter((field) => !field.startsWith('-'))
      .map((field) => ({ part: `sort=${field}`, column: field, filter: undefined, place: schema }))
  })
}

/** Whether the code defines the filter as a function of a `Listing` of records/list.ts. */
function definesFilter(code: string, filter: string | undefined): boolean {
  return filter !== undefined && new RegExp(`\\b${filter}: \\(`).test(code)
}
