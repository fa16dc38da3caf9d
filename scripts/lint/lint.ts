/** Checks the contract with the rules of Redocly and with our own. Also checks the guides and
 *  READMEs. */
import { fileURLToPath } from 'node:url'
import { type Fault, findUngenerated } from '../generate/faults.ts'
import { buildContract } from '../model/contract.ts'
import { UnsupportedDocument } from '../model/document.ts'
import { findDocument, hasPlainDocument } from '../model/document-folder.ts'
import { ContractError, type Finding } from '../model/source.ts'
import { isGenerated } from '../model/source-hashes.ts'
import { readYaml } from '../model/yaml.ts'
import { readAnyContract } from '../service/read.ts'
import { findDocumentProblems } from './documents.ts'
import type { LintProblem } from './problem.ts'
import { lintByRedocly, lintBySpecification } from './redocly.ts'
import { rules } from './rules.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The problems of openapi.yaml, asyncapi.yaml and the Markdown files in `root`, sorted by file and
 *  line. If `root` has a document of another team, only the problems of that document. Throws
 *  `Refused` if @redocly/cli is not installed. */
export async function lint(root = ROOT): Promise<LintProblem[]> {
  try {
    if (hasPlainDocument(root)) return await lintDocument(root)
    // Redocly runs in another process while our rules run. If both fail, only our error is thrown.
    const ofRedocly = lintByRedocly(root)
    ofRedocly.catch(() => undefined)
    const problems = [...(await findOwnProblems(root)), ...(await ofRedocly)]
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

/** The parts of a document that the toolchain does not support. If it supports all, the parts that
 *  break the OpenAPI specification. */
async function lintDocument(root: string): Promise<LintProblem[]> {
  try {
    const { missing } = await readAnyContract(root)
    const problems = missing.map((finding) => ofFinding('complete', finding))
    // Redocly also reports the parts in `missing`, with messages of its own.
    const isReported = ({ file, line, column, message }: LintProblem): boolean =>
      / must be present /.test(message) &&
      problems.some(
        (other) => other.file === file && other.line === line && other.column === column,
      )
    const others = await lintBySpecification(root, findDocument(root) as string)
    return [...problems, ...others.filter((problem) => !isReported(problem))]
  } catch (error) {
    if (!(error instanceof UnsupportedDocument)) throw error
    return error.findings.map((finding) => ofFinding('supported', finding))
  }
}

/** For example `openapi.yaml:66:7 operation-id-unique — …`. */
export function formatProblem({ file, line, column, rule, message }: LintProblem): string {
  return `${file}:${line}:${column} ${rule} — ${message}`
}

/** The problems that `lint` finds without Redocly. Throws `ContractError` if openapi.yaml or
 *  asyncapi.yaml cannot be read. */
export async function findOwnProblems(root: string): Promise<LintProblem[]> {
  const openapi = await readYaml(root, 'openapi.yaml')
  const asyncapi = await readYaml(root, 'asyncapi.yaml')
  try {
    const contract = buildContract(openapi, asyncapi)
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
