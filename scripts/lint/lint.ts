/** Checks the contract: Redocly's rules for OpenAPI and AsyncAPI documents, and our own for this contract. */
import { fileURLToPath } from 'node:url'
import { buildContract } from '../model/contract.ts'
import { ContractError, type Source } from '../model/source.ts'
import { readYaml } from '../model/yaml.ts'
import type { LintProblem } from './problem.ts'
import { redocly } from './redocly.ts'
import { rules } from './rules.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The problems of openapi.yaml and asyncapi.yaml in `root`, by file and line.
 *  Throws `Refused` if @redocly/cli is not installed. */
export async function lint(root = ROOT): Promise<LintProblem[]> {
  try {
    const [openapi, asyncapi] = [
      await readYaml(root, 'openapi.yaml'),
      await readYaml(root, 'asyncapi.yaml'),
    ]
    const problems = [...findOwnProblems(openapi, asyncapi), ...(await redocly(root))]
    const unique = new Map(problems.map((problem) => [formatProblem(problem), problem]))
    return [...unique.values()].sort(
      (a, b) => b.file.localeCompare(a.file) || a.line - b.line || a.column - b.column,
    )
  } catch (error) {
    if (error instanceof ContractError) return [toProblem(error)]
    throw error
  }
}

/** `openapi.yaml:66:7 operation-id-unique — …` */
export function formatProblem({ file, line, column, rule, message }: LintProblem): string {
  return `${file}:${line}:${column} ${rule} — ${message}`
}

function findOwnProblems(openapi: Source, asyncapi: Source): LintProblem[] {
  try {
    const contract = buildContract(openapi, asyncapi)
    return Object.entries(rules).flatMap(([rule, find]) =>
      find(contract).map(({ source, path, problem }) => ({
        file: source.file,
        ...source.position(path),
        rule,
        message: problem,
      })),
    )
  } catch (error) {
    // Our rules need a complete model.
    if (error instanceof ContractError) return [toProblem(error)]
    throw error
  }
}

function toProblem({ file, position, problem }: ContractError): LintProblem {
  return { file, ...position, rule: 'generates', message: problem }
}
