import { type Command, Option } from 'commander'
import { type GenerateResult, generate } from '../scripts/generate/generate.ts'
import { generateResource, type ResourceFiles } from '../scripts/generate/resource/generate.ts'
import type { Result } from '../scripts/report/result.ts'
import { addReportOptions, type Checked, type ReportOptions, reportResults } from './reports.ts'
import { parseRoot, ROOT_OPTION } from './root.ts'
import { examples, type Output, type Shell } from './shell.ts'

interface GenerateFlags extends ReportOptions {
  check?: boolean
  resource?: string
  root?: string
}

export function addGenerate(program: Command, shell: Shell): void {
  addReportOptions(program.command('generate'))
    .description(
      'Write generated/ from openapi.yaml and asyncapi.yaml. For each operation without a handler, also ' +
        'create handlers/<operationId>.ts, which responds with 501, and a failing test. ' +
        'List the files and mentions that belong to removed operations; they are never deleted. ' +
        '--resource also writes the code of a resource that both contracts describe: handlers to list, create, ' +
        'get, update and delete its records, the records file, a migration, a test and the test data.',
    )
    .addOption(
      new Option('--check', 'write nothing; list stale and orphaned files').conflicts('resource'),
    )
    .option(
      '--resource <name>',
      'the last part of the path, for example venues for /public/v1/venues',
    )
    .addOption(
      new Option(ROOT_OPTION, 'the folder of the contract (default: this installation)')
        .argParser(parseRoot)
        .conflicts('resource'),
    )
    .addHelpText(
      'after',
      `${examples('muster generate', 'muster generate --check', 'muster generate --resource venues')}
--resource derives columns from the schema of the record, and new values from that of the create request: a
default, null, or the first value of an enumeration. It refuses, with the line, what it cannot derive: references to
other records, filters that are no plain comparison with a field, fields of several types. It overwrites only
unchanged stubs.

Exit status: 0 for success, 1 if the contract is faulty, 2 for wrong usage. With --check: 1 also if a file is stale
or orphaned.
`,
    )
    .action(
      shell.action(
        (flags: GenerateFlags): Promise<Output> =>
          reportResults('muster generate', flags, () => run(flags)),
      ),
    )
}

async function run({ check = false, resource, root }: GenerateFlags): Promise<Checked> {
  const files = resource === undefined ? undefined : await generateResource(resource)
  const result = await generate({ check, root })
  const isStale = result.stale.length > 0 || result.orphans.length > 0
  return {
    output: {
      document: { ...result, resource: files },
      text: check ? formatCheck(result) : formatResource(files) + formatGenerated(result),
      failed: check && isStale,
    },
    results: [...result.stale, ...result.orphans].map((line) => toResult(line, check)),
  }
}

/** A line begins with the file, for example `generated/events.ts is stale` or `test/a.ts:5 names getNote, …`. */
function toResult(line: string, isError: boolean): Result {
  const [, file = '', number, message = ''] = /^([^\s:]+)(?::(\d+))? (.*)$/s.exec(line) ?? []
  return {
    level: isError ? 'error' : 'warning',
    rule: 'generated',
    message,
    file,
    line: number === undefined ? null : Number(number),
  }
}

function formatCheck({ stale, orphans }: GenerateResult): string {
  const lines =
    stale.length === 0
      ? ['generated/ is fresh.']
      : [...stale, 'Run "npm run generate" and commit the files that it writes.']
  return [...lines, ...orphans].join('\n')
}

/** One line for each file, and one for each task that is left. */
function formatResource(files: ResourceFiles | undefined): string {
  if (files === undefined) return ''
  return [
    ...files.written.map((file) => `wrote ${file}`),
    ...files.changed.map((file) => `changed ${file}`),
    ...files.removed.map((file) => `removed ${file}`),
    ...files.left.map((task) => `left for you: ${task}`),
    '',
  ].join('\n')
}

/** One line for each file. */
export function formatGenerated({ written, removed, orphans }: GenerateResult): string {
  const lines = [
    ...written.map((file) => `wrote ${file}`),
    ...removed.map((file) => `removed ${file}`),
  ]
  return [...(lines.length === 0 ? ['generated/ was already fresh.'] : lines), ...orphans].join(
    '\n',
  )
}
