import { type Command, Option } from 'commander'
import { type GenerateResult, generate } from '../scripts/generate/generate.ts'
import { generateResource, type ResourceFiles } from '../scripts/generate/resource/generate.ts'
import { formatRemark, type Remark, type Result } from '../scripts/report/result.ts'
import { addReportOptions, type CheckReport, type ReportOptions, reportResults } from './reports.ts'
import { examples, type Output, type Shell } from './shell.ts'

const HELP_FLAGS = ['-h', '--help']

interface Options extends ReportOptions {
  check?: boolean
  resource?: string
}

export function addCommand(program: Command, shell: Shell): void {
  const command: Command = program
    .command('generate')
    .description(
      'Write generated/ from openapi.yaml and asyncapi.yaml, and their lists of event types. ' +
        'For each operation without a handler, also create handlers/<operationId>.ts, which responds with ' +
        '501, and a failing test. ' +
        'List the files and lines that mention removed operations, without deleting them, and the filters and ' +
        'sorts that have no column in the database. ' +
        '--resource also writes the code of a resource that both contracts describe: handlers to list, create, ' +
        'get, update and delete its records, the records file, a migration, a test and the test data.',
    )
    .addOption(
      new Option(
        '--check',
        'write nothing; list stale and orphaned files and missing columns',
      ).conflicts('resource'),
    )
    .option(
      '--resource <name>',
      'the last part of the path, for example venues for /public/v1/venues',
      // commander takes --help as the name, because the option needs one.
      (name) => (HELP_FLAGS.includes(name) ? command.help() : name),
    )
  addReportOptions(command)
    .addHelpText(
      'after',
      `${examples('muster generate', 'muster generate --check', 'muster generate --resource venues')}
--resource derives columns from the schema of the record. A field that the create request lacks begins with its
default, null, or the first value of its enumeration. A field task_id refers to a task: the table has a foreign
key, requests with an unknown task get 422, and a task that a record refers to cannot be deleted. filter[search] with
x-filter becomes a search. --resource refuses what it cannot derive, and names the line: lists below another record,
filters other than a search or a comparison with a field, fields of several types. It overwrites only unchanged stubs.

Exit status: 0 for success, 1 if the contract is faulty, 2 for wrong usage. With --check: 1 also if a file is stale
or orphaned, or a column is missing.
`,
    )
    .action(
      shell.action(
        (options: Options): Promise<Output> =>
          reportResults('muster generate', options, () => run(options)),
      ),
    )
}

async function run({ check = false, resource }: Options): Promise<CheckReport> {
  const files = resource === undefined ? undefined : await generateResource(resource)
  const result = await generate({ check })
  const { stale, orphans, missingColumns } = result
  const remarks = [...stale, ...orphans, ...missingColumns]
  const level = check ? 'error' : 'warning'
  return {
    output: {
      document: {
        written: result.written,
        removed: result.removed,
        stale: stale.map(formatRemark),
        orphans: orphans.map(formatRemark),
        missing_columns: missingColumns.map(formatRemark),
        resource: files,
      },
      text: check
        ? formatCheck(result)
        : [...(files ? [formatResource(files)] : []), formatGenerated(result)].join('\n'),
      failed: check && remarks.length > 0,
    },
    results: remarks.map(toResult(level)),
  }
}

const toResult =
  (level: Result['level']) =>
  (remark: Remark): Result => ({ level, rule: 'generated', ...remark })

function formatCheck({ stale, orphans, missingColumns }: GenerateResult): string {
  const lines =
    stale.length === 0
      ? ['generated/ is fresh.']
      : [...stale.map(formatRemark), 'Run "npm run generate" and commit the files that it writes.']
  return [...lines, ...[...orphans, ...missingColumns].map(formatRemark)].join('\n')
}

function formatResource({ written, changed, removed, left }: ResourceFiles): string {
  return [
    ...written.map((file) => `wrote ${file}`),
    ...changed.map((file) => `changed ${file}`),
    ...removed.map((file) => `removed ${file}`),
    ...left.map((task) => `left for you: ${task}`),
  ].join('\n')
}

export function formatGenerated({
  written,
  removed,
  orphans,
  missingColumns,
}: GenerateResult): string {
  const isFresh = written.length + removed.length === 0
  return [
    ...(isFresh ? ['generated/ was already fresh.'] : []),
    ...written.map((file) => `wrote ${file}`),
    ...removed.map((file) => `removed ${file}`),
    ...[...orphans, ...missingColumns].map(formatRemark),
  ].join('\n')
}
