/** The lines that a generated resource adds to files that all resources share. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Field } from './fields.ts'
import { renderFixture } from './fixture.ts'
import { countedColumn } from './migration.ts'
import type { Resource } from './resource.ts'

/** A text to insert after the last match of `after`. */
interface Insertion {
  file: string
  after: RegExp
  text: string
  /** A file with this text needs no insertion. */
  unless?: RegExp
  /** What a person must do if the file has no match. */
  task: string
}

export function insertionsFor(resource: Resource): Insertion[] {
  const { table, type } = resource
  const counted = countedColumn(resource)
  const removal = resource.delete ? 'Clients and users delete records' : 'Deleted with the account'
  return [
    {
      // At the end of FIXTURES: the seeds of a resource refer only to resources above it.
      file: 'test/resources.ts',
      after: /^const FIXTURES: [\s\S]*?\n(?=\}\n)/gm,
      text: renderFixture(resource),
      task: `add ${type} to FIXTURES`,
    },
    {
      file: 'records/removal-rules.ts',
      after: /^ {2}\w+: 'Clients and users delete records',\n/gm,
      text: `  ${table}: '${removal}',\n`,
      task: `add ${table} to permanentTables`,
    },
    {
      file: 'docs/operations.md',
      after: /^\| `\w+` \| Clients and users delete records \|\n/gm,
      text: `| \`${table}\` | ${removal} |\n`,
      task: `add ${table} to the table of what is deleted`,
    },
    {
      file: 'records/account-erasure.ts',
      after: /^ {2}\['webhooks', ownRows\('webhooks', 'id'\)\],\n/gm,
      text: `  ['${table}', ownRows('${table}', 'id')],\n`,
      task: `add ${table} to STEPS`,
    },
    {
      file: 'records/quotas.ts',
      after: /^const RECORD_TABLES = \[/gm,
      text: `'${table}', `,
      task: `add ${table} to RECORD_TABLES`,
    },
    ...(counted === undefined
      ? []
      : [
          {
            file: 'records/record-counts.ts',
            after: /^export const countedColumns: .*\n/gm,
            text: `  ${table}: '${counted}',\n`,
            task: `add ${table} to countedColumns`,
          },
        ]),
    ...resource.fields.flatMap((field) => deletionChecks(resource, field)),
  ]
}

/** The code that refuses to delete a record if records of this resource refer to it. */
function deletionChecks(resource: Resource, { name, reference }: Field): Insertion[] {
  if (!reference?.deletion) return []
  const { table, variable, noun } = resource
  const file = `records/${reference.slug}.ts`
  const records = `${variable}Count`
  const task = `refuse to delete a ${reference.noun} with ${resource.slug}, as deleteJobRow in records/jobs.ts does`
  return [
    {
      file,
      after: /^export async function delete\w+Row\([\s\S]*?\{\n/gm,
      text: `  const ${records} = await countRows(scope, '${table}', { ${name}: id })
  if (${records} > 0)
    throw new InvalidInput({
      ${reference.type}: [\`still has \${countNoun(${records}, '${noun}')}. Delete them first.\`],
    })
`,
      task,
    },
    newImport(file, 'InvalidInput', '../errors.ts', task),
    newImport(file, 'countNoun', './references.ts', task),
    newImport(file, 'countRows', './references.ts', task),
  ]
}

/** An import, before the last import. Formatting joins the imports from one file. */
function newImport(file: string, name: string, from: string, task: string): Insertion {
  return {
    file,
    after: /^(?=import )/gm,
    text: `import { ${name} } from '${from}'\n`,
    unless: new RegExp(`^import \\{[^}]*\\b${name}\\b`, 'm'),
    task,
  }
}

/** Returns the new texts of the files and the tasks that are left for a person. Writes nothing. */
export async function prepareInsertions(
  root: string,
  insertions: Insertion[],
): Promise<{ changed: [file: string, text: string][]; left: string[] }> {
  const changed = new Map<string, string>()
  const left = new Set<string>()
  for (const { file, after, text, unless, task } of insertions) {
    const whole = changed.get(file) ?? (await readFile(join(root, file), 'utf8').catch(() => ''))
    if (unless?.test(whole)) continue
    const match = [...whole.matchAll(after)].at(-1)
    if (match) {
      const end = match.index + match[0].length
      changed.set(file, whole.slice(0, end) + text + whole.slice(end))
    } else left.add(`${file}: ${task}`)
  }
  return { changed: [...changed], left: [...left] }
}
