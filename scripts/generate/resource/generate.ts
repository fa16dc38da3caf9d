/** `muster generate --resource`: the files of a resource that is in the contract. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Refused } from '../../../errors.ts'
import { readContract } from '../../model/yaml.ts'
import { listNames, newMigrationFile } from '../files.ts'
import { findFormatter, formatFiles } from '../format.ts'
import { renderStubs } from '../stubs.ts'
import { filtersWithoutCases } from './fixture.ts'
import { renderHandlers } from './handlers.ts'
import { insertionsFor, prepareInsertions } from './insertions.ts'
import { renderMigration } from './migration.ts'
import { renderRecords } from './records.ts'
import { type Resource, readResource } from './resource.ts'
import { renderTest } from './tests.ts'

/** Paths are relative to the root. */
export interface ResourceFiles {
  written: string[]
  /** Files that all resources share, and that got lines for this resource. */
  changed: string[]
  /** Stubs of tests that the new test replaces. */
  removed: string[]
  /** What a person must still do, one sentence each. */
  left: string[]
}

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** Writes the handlers, records file, migration, test and fixture of a resource. Throws
 *  `ContractError` if the contract does not describe the resource as needed, and `Refused` for
 *  example if a file exists that is not an unchanged stub. In both cases, nothing is written. */
export async function generateResource(slug: string, root = ROOT): Promise<ResourceFiles> {
  // Throws before anything is written if the formatter is not installed.
  findFormatter()
  const contract = await readContract(root)
  const resource = readResource(contract, slug)
  const files: Record<string, string> = {
    ...renderHandlers(resource),
    [`records/${slug}.ts`]: renderRecords(resource),
    [await newMigrationFile(root, resource.table)]: renderMigration(resource),
    [`test/handlers/${slug}.test.ts`]: renderTest(resource),
  }
  const stubs = renderStubs(contract, [])
  await assertReplaceable(root, Object.keys(files), stubs)
  await assertNoMigration(root, resource)
  await assertReferencesKept(root, resource)
  const insertions = await prepareInsertions(root, insertionsFor(resource))
  const removed = await findUnchangedStubs(root, resource, stubs)

  for (const [file, text] of [...Object.entries(files), ...insertions.changed]) {
    await mkdir(dirname(join(root, file)), { recursive: true })
    await writeFile(join(root, file), text)
  }
  for (const file of removed) await rm(join(root, file))
  const changed = insertions.changed.map(([file]) => file)
  await formatFiles(root, [...Object.keys(files), ...changed])
  return {
    written: Object.keys(files),
    changed,
    removed,
    left: [...insertions.left, ...tasksFor(resource)],
  }
}

async function assertReplaceable(
  root: string,
  files: string[],
  stubs: Record<string, string>,
): Promise<void> {
  for (const file of files) {
    const text = await readFile(join(root, file), 'utf8').catch(() => undefined)
    if (text !== undefined && text !== stubs[file])
      throw new Refused(`${file} exists: move it away, or write the rest of the resource by hand`)
  }
}

async function assertNoMigration(root: string, { table, slug }: Resource): Promise<void> {
  const names = await listNames(join(root, 'records/migrations'))
  const existing = names.find((name) => name.endsWith(`_${table}.ts`))
  if (existing)
    throw new Refused(
      `records/migrations/${existing} exists: delete it if it has not landed, or write the files of ${slug} by hand`,
    )
}

/** Throws `Refused` if records/removal-rules.ts removes the records that a field refers to: the
 *  field would make this removal fail. */
async function assertReferencesKept(root: string, { fields }: Resource): Promise<void> {
  const file = 'records/removal-rules.ts'
  const rules = await readFile(join(root, file), 'utf8').catch(() => '')
  for (const { name, reference } of fields)
    if (reference && rules.includes(`table: '${reference.table}'`))
      throw new Refused(
        `${file} removes ${reference.slug}, to which ${name} refers: generate without it, then add it by hand`,
      )
}

async function findUnchangedStubs(
  root: string,
  { list, get, create, update, delete: deletion }: Resource,
  stubs: Record<string, string>,
): Promise<string[]> {
  const operations = [list, get, create, update, deletion].filter((operation) => !!operation)
  const tests = operations.map(({ id }) => `test/handlers/${id}.test.ts`)
  const found = tests.map(async (file) => {
    const text = await readFile(join(root, file), 'utf8').catch(() => undefined)
    return text !== undefined && text === stubs[file] ? [file] : []
  })
  return (await Promise.all(found)).flat()
}

function tasksFor(resource: Resource): string[] {
  const { slug } = resource
  return [
    ...filtersWithoutCases(resource).map(
      (name) => `test/resources.ts: add cases of filter ${name}`,
    ),
    ...resource.fields.flatMap(({ reference }) =>
      reference?.deletion
        ? [
            `openapi.yaml: describe in ${reference.deletion.id} that it responds with 422 while ${slug} ` +
              `refer to the ${reference.noun}`,
          ]
        : [],
    ),
    `records/${slug}.ts: add the rules that the contract does not have, such as unique fields and the allowed ` +
      'changes of a status',
    'Run `npm run update-schema`: it writes the new table into the two schema files and freezes the migration',
  ]
}
