/** Checks the contract with Redocly's rules for OpenAPI and AsyncAPI documents and with our own,
 *  and the guides and READMEs. */
import { fileURLToPath } from 'node:url'
import { type Fault, findUngenerated } from '../generate/faults.ts'
import { buildContract } from '../model/contract.ts'
import { UnsupportedDocument } from '../model/document.ts'
import { findDocument, isPlain } from '../model/document-folder.ts'
import { ContractError, type Finding } from '../model/source.ts'
import { isGenerated } from '../model/source-hashes.ts'
import { readYaml } from '../model/yaml.ts'
import { readAnyContract } from '../service/read.ts'
import { findDocumentProblems } from './documents.ts'
import type { LintProblem } from './problem.ts'
import { lintByRedocly, lintBySpecification } from './redocly.ts'
import { rules } from './rules.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The problems of openapi.yaml, asyncapi.yaml and the Markdown files in `root`, by file and line.
 *  Throws `Refused` if @redocly/cli is not installed. */
export async function lint(root = ROOT): Promise<LintProblem[]> {
  try {
    if (isPlain(root)) return await lintDocument(root)
    // Redocly runs in a process of its own, meanwhile. If both fail, our error is the better one.
    const others = lintByRedocly(root)
    others.catch(() => undefined)
    const problems = [...(await findOwnProblems(root)), ...(await others)]
    const unique = new Map(problems.map((problem) => [formatProblem(problem), problem]))
    // By file from Z to A: openapi.yaml comes first.
    return [...unique.values()].sort(
      (a, b) => b.file.localeCompare(a.file) || a.line - b.line || a.column - b.column,
    )
  } catch (error) {
    if (error instanceof ContractError) return [toProblem(error)]
    throw error
  }
}

/** Lists what the toolchain does not support in a document. If it supports everything, lists what
 *  breaks OpenAPI. */
async function lintDocument(root: string): Promise<LintProblem[]> {
  try {
    const { missing } = await readAnyContract(root)
    const problems = missing.map((finding) => toLintProblem('complete', finding))
    const isReported = ({ file, line, column, message }: LintProblem): boolean =>
      / must be present /.test(message) &&
      problems.some(
        (other) => other.file === file && other.line === line && other.column === column,
      )
    const others = await lintBySpecification(root, findDocument(root) as string)
    return [...problems, ...others.filter((problem) => !isReported(problem))]
  } catch (error) {
    if (!(error instanceof UnsupportedDocument)) throw error
    return error.findings.map((finding) => toLintProblem('supported', finding))
  }
}

/** For example `openapi.yaml:66:7 operation-id-unique — …`. */
export function formatProblem({ file, line, column, rule, message }: LintProblem): string {
  return `${file}:${line}:${column} ${rule} — ${message}`
}

/** Without Redocly's problems. Throws `ContractError` if a file cannot be read. */
export async function findOwnProblems(root: string): Promise<LintProblem[]> {
  const openapi = await readYaml(root, 'openapi.yaml')
  const asyncapi = await readYaml(root, 'asyncapi.yaml')
  try {
    const contract = buildContract(openapi, asyncapi)
    const broken = Object.entries(rules).flatMap(([rule, find]) =>
      find(contract).map((finding) => toLintProblem(rule, finding)),
    )
    const isReported = ({ file, line, message }: LintProblem): boolean =>
      broken.some(
        (other) => other.file === file && other.line === line && other.message === message,
      )
    const ungenerated = (await isGenerated(root, contract))
      ? []
      : findUngenerated(contract).map(toProblem)
    return [
      ...broken,
      ...ungenerated.filter((problem) => !isReported(problem)),
      ...(await findDocumentProblems(root, contract)),
    ]
  } catch (error) {
    // The model is incomplete, so the rules cannot run.
    if (error instanceof ContractError) return [toProblem(error)]
    throw error
  }
}

function toLintProblem(rule: string, { source, path, problem }: Finding): LintProblem {
  return { file: source.file, ...source.position(path), rule, message: problem }
}

function toProblem({ file, position, problem }: Fault): LintProblem {
  return { file, ...position, rule: 'generates', message: problem }
}
