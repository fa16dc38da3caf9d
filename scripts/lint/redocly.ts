/** Runs Redocly's linter as a process: its package has no programming interface. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { findDevelopmentProgram } from '../model/development-program.ts'
import type { LintProblem } from './problem.ts'

const CONFIG = fileURLToPath(new URL('redocly.yaml', import.meta.url))
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024
/** Redocly silently leaves out the problems above this number. That never happens: with so many
 *  problems, the output exceeds `MAX_OUTPUT_BYTES`, and `run` throws. */
const MAX_PROBLEMS = 1_000_000

interface Report {
  problems: {
    ruleId: string
    message: string
    suggest: string[]
    location: { source: { ref: string }; start?: { line: number; col: number } }[]
  }[]
}

/** The problems of openapi.yaml and asyncapi.yaml in `root` by the rules of redocly.yaml. Throws
 *  `Refused` if Redocly is not installed. */
export function lintByRedocly(root: string): Promise<LintProblem[]> {
  return lintFiles(root, ['openapi.yaml', 'asyncapi.yaml'], `--config=${CONFIG}`)
}

/** The problems by the rules of Redocly's set `recommended-strict`. */
export function lintByStrictRules(root: string, file: string): Promise<LintProblem[]> {
  return lintFiles(root, [file], '--extends=recommended-strict')
}

/** Checks all files in one process: Redocly takes longer to load than to check a small file.
 *  `rulesOption` is an option of Redocly's command line. */
async function lintFiles(
  root: string,
  files: string[],
  rulesOption: string,
): Promise<LintProblem[]> {
  const args = [
    ...NODE_FLAGS,
    findDevelopmentProgram('@redocly/cli', 'bin/cli.js'),
    'lint',
    ...files,
    rulesOption,
    '--format=json',
    `--max-problems=${MAX_PROBLEMS}`,
  ]
  // No telemetry and no update check: nothing here may need a network.
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  const { stdout, stderr } = await run(args, { cwd: root, env })
  const reports = parseReports(stdout)
  if (reports.length !== files.length)
    throw new Error(`redocly could not check ${files.join(' and ')}: ${stderr || stdout}`)
  return reports.flatMap(({ problems }, index) =>
    problems.map(({ ruleId, message, suggest, location: [place] }) => ({
      file: place?.source.ref ?? files[index] ?? '',
      line: place?.start?.line ?? 1,
      column: place?.start?.col ?? 1,
      rule: ruleId,
      message: suggest.length > 0 ? `${message} Did you mean ${suggest.join(' or ')}?` : message,
    })),
  )
}

/** Redocly computes for about a second. Optimizing its functions and collecting garbage on further
 *  threads takes more processor time than it saves. */
const NODE_FLAGS = ['--no-turbofan', '--single-threaded-gc']

/** Ignores the exit status: the report has the problems. Throws if Redocly is killed, or if it
 *  writes more than `MAX_OUTPUT_BYTES`. */
function run(
  args: string[],
  options: { cwd: string; env: NodeJS.ProcessEnv },
): Promise<{ stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      args,
      { ...options, maxBuffer: MAX_OUTPUT_BYTES },
      (error, stdout, stderr) => {
        const hasExited = error === null || typeof error.code === 'number'
        if (hasExited) resolve({ stdout, stderr })
        else reject(new Error(`redocly did not finish: ${error.message}`, { cause: error }))
      },
    )
  })
}

/** One report for each file, in the order of the files. Redocly writes the reports without a
 *  separator (`}{`). A `}` at the start of a line always ends a report. Empty if the text is not
 *  JSON. */
function parseReports(text: string): Report[] {
  try {
    return text.split(/(?<=^\})(?=\{)/m).map((report) => JSON.parse(report) as Report)
  } catch {
    return []
  }
}
