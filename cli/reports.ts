/** The output formats that lint, diff, generate and contract have in common. */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Command, Option } from 'commander'
import { toHar } from '../scripts/contract/report/har.ts'
import { ContractError } from '../scripts/model/source.ts'
import { toAnnotations, toMarkdown, toPage } from '../scripts/report/formats.ts'
import { resultsJunit } from '../scripts/report/junit.ts'
import type { Result } from '../scripts/report/result.ts'
import type { Output } from './shell.ts'

export interface ReportOptions {
  json?: boolean
  junit?: string
  report?: string
  markdown?: string
  github?: boolean
  /** Only `muster contract` has this option. */
  har?: string
}

export interface CheckReport {
  /** `reportResults` adds `results` to `output.document`. */
  output: Output
  results: Result[]
  /** The content for --junit. Default: the `results`. */
  junit?: string
  /** The HTML above the results in --report. */
  section?: string
  /** The content for --har. Default: an archive without requests. */
  har?: string
}

export function addReportOptions(command: Command): Command {
  return command
    .option('--junit <file>', 'also write the results as JUnit XML')
    .option('--report <file>', 'also write the results as an HTML file')
    .option('--markdown <file>', 'also write the results as a Markdown file')
    .addOption(
      new Option('--github', 'also print the results as annotations for GitHub Actions').conflicts(
        'json',
      ),
    )
}

/** Runs the check and writes its reports. If the check throws an error, the reports have one result,
 *  and the error is thrown again after they are written. */
export async function reportResults(
  title: string,
  options: ReportOptions,
  check: () => Promise<CheckReport>,
): Promise<Output> {
  const checked = await check().catch(async (error: unknown) => {
    await reportError(title, options, error)
    throw error
  })
  await writeReports(title, options, checked)
  const { output, results } = checked
  return {
    ...output,
    document: { ...(output.document as object), results },
    text: [output.text, ...annotate(options, results)].join('\n'),
  }
}

async function reportError(title: string, options: ReportOptions, error: unknown): Promise<void> {
  const results = [toResult(error)]
  await writeReports(title, options, { results })
  for (const line of annotate(options, results)) console.log(line)
  if (options.json) console.log(JSON.stringify({ error: (error as Error).message, results }))
}

function annotate({ github = false }: ReportOptions, results: Result[]): string[] {
  return github ? toAnnotations(results) : []
}

function toResult(error: unknown): Result {
  const rule = 'cannot-run'
  if (error instanceof ContractError) {
    const { problem, file, position } = error
    return { level: 'error', rule, message: problem, file, line: position.line }
  }
  return { level: 'error', rule, message: (error as Error).message, file: null, line: null }
}

async function writeReports(
  title: string,
  { junit, report, markdown, har }: ReportOptions,
  { results, ...texts }: Omit<CheckReport, 'output'>,
): Promise<void> {
  if (junit !== undefined) await writeReport(junit, texts.junit ?? resultsJunit(title, results))
  if (report !== undefined) await writeReport(report, toPage(title, results, texts.section))
  if (markdown !== undefined) await writeReport(markdown, toMarkdown(title, results))
  if (har !== undefined) await writeReport(har, texts.har ?? toHar({ url: '', cases: [] }))
}

/** Creates the folder of the file if it is missing. */
async function writeReport(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text)
}
