/** Runs Redocly's linter as a process: its package has no programming interface. */
import { execFile } from 'node:child_process'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findDevelopmentProgram } from '../model/development-program.ts'
import type { LintProblem } from './problem.ts'

const CONFIG = fileURLToPath(new URL('redocly.yaml', import.meta.url))
const STRICT_CONFIG = fileURLToPath(new URL('redocly-strict.yaml', import.meta.url))
/** Redocly runs here. In the folder of a contract, it would read that folder's redocly.yaml, which
 *  can name plugins. */
const DIRECTORY = dirname(CONFIG)
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

/** The problems of openapi.yaml and asyncapi.yaml in `root` by the rules of redocly.yaml. The two
 *  must not refer to other files or to URLs, because Redocly would read them. Throws `Refused` if
 *  Redocly is not installed. */
export function lintByRedocly(root: string): Promise<LintProblem[]> {
  return lintFiles(root, ['openapi.yaml', 'asyncapi.yaml'], CONFIG)
}

/** The problems by the rules of Redocly's set `recommended-strict`. */
export function lintByStrictRules(root: string, file: string): Promise<LintProblem[]> {
  return lintFiles(root, [file], STRICT_CONFIG)
}

/** Checks all files in one process: Redocly takes longer to load than to check a small file. */
async function lintFiles(root: string, files: string[], config: string): Promise<LintProblem[]> {
  const args = [
    ...NODE_FLAGS,
    findDevelopmentProgram('@redocly/cli', 'bin/cli.js'),
    'lint',
    ...files.map((file) => join(root, file)),
    `--config=${config}`,
    '--format=json',
    `--max-problems=${MAX_PROBLEMS}`,
  ]
  const { stdout, stderr } = await run(args)
  const reports = parseReports(stdout)
  if (reports.length !== files.length)
    throw new Error(`redocly could not check ${files.join(' and ')}: ${stderr || stdout}`)
  return reports.flatMap(({ problems }, index) =>
    problems.map(({ ruleId, message, suggest, location: [place] }) => ({
      file: place ? relative(root, resolve(DIRECTORY, place.source.ref)) : (files[index] ?? ''),
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

/** Without telemetry and update check, Redocly needs no network. It gets no other variable: a
 *  configuration could send them away. */
const ENVIRONMENT = {
  PATH: process.env.PATH,
  REDOCLY_TELEMETRY: 'off',
  REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
}

/** Ignores the exit status: the report has the problems. Throws if Redocly is killed, or if it
 *  writes more than `MAX_OUTPUT_BYTES`. */
function run(args: string[]): Promise<{ stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      args,
      { cwd: DIRECTORY, env: ENVIRONMENT, maxBuffer: MAX_OUTPUT_BYTES },
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
