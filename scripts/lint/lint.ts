/** Is the contract well made? Redocly for what holds of every OpenAPI and AsyncAPI document, rules of our own for what holds of ours. */
import { fileURLToPath } from 'node:url'
import { buildContract } from '../model/contract.ts'
import { ContractError, type Source } from '../model/source.ts'
import { readYaml } from '../model/yaml.ts'
import { redocly } from './redocly.ts'
import { rules } from './rules.ts'

export interface Problem {
  file: string
  /** Both count from 1. */
  line: number
  column: number
  rule: string
  /** What is wrong, and what to do. */
  message: string
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** What is wrong with openapi.yaml and asyncapi.yaml of `root`, in the order of their lines. Throws `Refused` without @redocly/cli. */
export async function lint(root = ROOT): Promise<Problem[]> {
  try {
    const [openapi, asyncapi] = [
      await readYaml(root, 'openapi.yaml'),
      await readYaml(root, 'asyncapi.yaml'),
    ]
    const problems = [...ownProblems(openapi, asyncapi), ...(await redocly(root))]
    const unique = new Map(problems.map((problem) => [sayProblem(problem), problem]))
    return [...unique.values()].sort(
      (a, b) => b.file.localeCompare(a.file) || a.line - b.line || a.column - b.column,
    )
  } catch (error) {
    if (error instanceof ContractError) return [problemOf(error)]
    throw error
  }
}

/** `openapi.yaml:66:7 operation-id-unique — …` */
export function sayProblem({ file, line, column, rule, message }: Problem): string {
  return `${file}:${line}:${column} ${rule} — ${message}`
}

function ownProblems(openapi: Source, asyncapi: Source): Problem[] {
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
    // Our rules can say nothing of the rest before this is mended.
    if (error instanceof ContractError) return [problemOf(error)]
    throw error
  }
}

function problemOf({ file, position, problem }: ContractError): Problem {
  return { file, ...position, rule: 'generates', message: problem }
}
