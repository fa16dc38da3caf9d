/** Checks the contract with Redocly's rules for OpenAPI and AsyncAPI documents and with our own,
 *  and the guides and READMEs. */
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { type Fault, findUngenerated } from '../generate/faults.ts'
import { buildContract } from '../model/contract.ts'
import { UnsupportedDocument } from '../model/document.ts'
import { findDocument, isPlain } from '../model/document-folder.ts'
import { ContractError } from '../model/source.ts'
import { isGenerated } from '../model/source-hashes.ts'
import { readYaml } from '../model/yaml.ts'
import { readAnyContract } from '../service/read.ts'
import { findDocumentProblems } from './documents.ts'
import type { LintProblem } from './problem.ts'
import { redocly, redoclySpec } from './redocly.ts'
import { rules } from './rules.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The problems of openapi.yaml, asyncapi.yaml and the Markdown files in `root`, by file and line.
 *  Throws `Refused` if @redocly/cli is not installed. */
export async function lint(root = ROOT): Promise<LintProblem[]> {
  try {
    if (isPlain(root)) return await lintDocument(root)
    // Redocly runs in a process of its own. `findOwnProblems` reports a file that cannot be read.
    const others = redocly(root)
    others.catch(() => undefined)
    const problems = [...(await findOwnProblems(root)), ...(await others)]
    const unique = new Map(problems.map((problem) => [formatProblem(problem), problem]))
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
    await readAnyContract(root)
    return await redoclySpec(root, findDocument(root) as string)
  } catch (error) {
    if (!(error instanceof UnsupportedDocument)) throw error
    return error.findings.map(({ source, path, problem }) => ({
      file: source.file,
      ...source.position(path),
      rule: 'supported',
      message: problem,
    }))
  }
}

/** `openapi.yaml:66:7 operation-id-unique — …` */
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
      find(contract).map(({ source, path, problem }) => ({
        file: source.file,
        ...source.position(path),
        rule,
        message: problem,
      })),
    )
    const isNew = (problem: LintProblem): boolean =>
      !broken.some(({ file, line, message }) =>
        isDeepStrictEqual([file, line, message], [problem.file, problem.line, problem.message]),
      )
    const ungenerated = (await isGenerated(root, contract))
      ? []
      : findUngenerated(contract).map(toProblem).filter(isNew)
    return [...broken, ...ungenerated, ...(await findDocumentProblems(root, contract))]
  } catch (error) {
    // Our rules need a complete model.
    if (error instanceof ContractError) return [toProblem(error)]
    throw error
  }
}

function toProblem({ file, position, problem }: Fault): LintProblem {
  return { file, ...position, rule: 'generates', message: problem }
}
