/** Checks the contract with the rules of Redocly and with our own. Also checks the guides and
 *  READMEs. */
import { fileURLToPath } from 'node:url'
import { type Fault, findUngenerated } from '../generate/faults.ts'
import { buildContract } from '../model/contract.ts'
import { assertReferences } from '../model/references.ts'
import { ContractError, type Finding, type Source } from '../model/source.ts'
import { isGenerated } from '../model/source-hashes.ts'
import { readYaml } from '../model/yaml.ts'
import { findWithoutCode } from './code.ts'
import { findDocumentProblems } from './documents.ts'
import type { LintProblem } from './problem.ts'
import { lintByRedocly } from './redocly.ts'
import { rules } from './rules.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The problems of openapi.yaml, asyncapi.yaml and the Markdown files in `root`, sorted by file and
 *  line. Throws `Refused` if @redocly/cli is not installed. */
export async function lint(root = ROOT): Promise<LintProblem[]> {
  try {
    // Before Redocly reads the files, because Redocly follows references to other files and URLs.
    const sources = await readSources(root)
    // Redocly runs in another process while our rules run. If both fail, only our error is thrown.
    const ofRedocly = lintByRedocly(root)
    ofRedocly.catch(() => undefined)
    const problems = [...(await findOwnProblems(root, sources)), ...(await ofRedocly)]
    const unique = new Map(problems.map((problem) => [formatProblem(problem), problem]))
    // By file from Z to A, so that openapi.yaml comes before asyncapi.yaml.
    return [...unique.values()].sort(
      (a, b) => b.file.localeCompare(a.file) || a.line - b.line || a.column - b.column,
    )
  } catch (error) {
    if (error instanceof ContractError) return [ofFault(error)]
    throw error
  }
}

/** openapi.yaml and asyncapi.yaml, which refer only to each other. Throws `ContractError` for a file
 *  that cannot be read, and for other references. */
async function readSources(root: string): Promise<[Source, Source]> {
  const openapi = await readYaml(root, 'openapi.yaml')
  const asyncapi = await readYaml(root, 'asyncapi.yaml')
  for (const source of [openapi, asyncapi])
    assertReferences({ 'openapi.yaml': openapi, 'asyncapi.yaml': asyncapi }, source)
  return [openapi, asyncapi]
}

/** For example `openapi.yaml:66:7 operation-id-unique — …`. */
export function formatProblem({ file, line, column, rule, message }: LintProblem): string {
  return `${file}:${line}:${column} ${rule} — ${message}`
}

/** The problems that `lint` finds without Redocly. Throws `ContractError` if openapi.yaml or
 *  asyncapi.yaml cannot be read. */
export async function findOwnProblems(
  root: string,
  sources?: [Source, Source],
): Promise<LintProblem[]> {
  try {
    const contract = buildContract(...(sources ?? (await readSources(root))))
    const broken = Object.entries(rules).flatMap(([rule, find]) =>
      find(contract).map((finding) => ofFinding(rule, finding)),
    )
    const isReported = ({ file, line, message }: LintProblem): boolean =>
      broken.some(
        (other) => other.file === file && other.line === line && other.message === message,
      )
    const ungenerated = (await isGenerated(root, contract))
      ? []
      : findUngenerated(contract).map(ofFault)
    return [
      ...broken,
      ...ungenerated.filter((problem) => !isReported(problem)),
      ...(await findWithoutCode(root, contract)).map((finding) => ofFinding('in-code', finding)),
      ...(await findDocumentProblems(root, contract)),
    ]
  } catch (error) {
    // The model is incomplete, so the rules cannot run.
    if (error instanceof ContractError) return [ofFault(error)]
    throw error
  }
}

function ofFinding(rule: string, { source, path, problem }: Finding): LintProblem {
  return { file: source.file, ...source.position(path), rule, message: problem }
}

function ofFault({ file, position, problem }: Fault): LintProblem {
  return { file, ...position, rule: 'generates', message: problem }
}
