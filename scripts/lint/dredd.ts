/** Parts of the contract that Dredd 14 silently drops, sends wrongly or refuses to start with. */
import type { Contract } from '../model/contract.ts'
import type { Operation, Parameter } from '../model/operations.ts'
import type { Finding, Source } from '../model/source.ts'
import { listUnquotedFlowScalars } from '../model/yaml.ts'

export function findDreddProblems(contract: Contract): Finding[] {
  return [
    ...contract.operations.flatMap((operation) => [
      ...operation.parameters.flatMap((parameter) => checkParameter(operation, parameter)),
      ...checkBody(operation),
      ...checkSummary(contract, operation),
    ]),
    ...Object.values(contract.sources).flatMap(findUnquotedUrls),
  ]
}

function checkParameter(operation: Operation, parameter: Parameter): Finding[] {
  const problem = findParameterProblem(parameter)
  if (problem === undefined) return []
  const { name, place } = parameter
  return [{ ...place, problem: `parameter ${name} of ${operation.id} ${problem}` }]
}

function findParameterProblem(parameter: Parameter): string | undefined {
  const { name, in: where, required, example } = parameter
  if (where === 'path' && !/^\w+$/.test(name))
    return 'must consist of letters, digits and _, or Dredd drops the operation'
  if (where === 'query' && !/^\w+(\[\w+\])*$/.test(name))
    return 'must consist of letters, digits, _ and pairs of [], or Dredd drops the operation'
  if (required && example === undefined)
    return 'is required but has no example, so Dredd does not start: add an example beside its schema'
  return undefined
}

function checkBody({ id, body }: Operation): Finding[] {
  if (!body || body.example !== undefined) return []
  const problem = `the body of ${id} has no example: add one, or Dredd sends empty strings`
  return [{ ...body.place, problem }]
}

/** The hooks of Dredd identify an operation by its path and summary. */
function checkSummary(
  { operations }: Contract,
  { id, path, summary, place }: Operation,
): Finding[] {
  if (summary === '')
    return [
      { ...place, problem: `${id} has no summary, which identifies it in Dredd's hooks: add one` },
    ]
  const first = operations.find(
    (operation) => operation.path === path && operation.summary === summary,
  )
  if (first?.id === id) return []
  const problem =
    `${id} has the summary of ${first?.id}, ` +
    `but Dredd's hooks need unique ones: change one of them`
  return [{ ...place, problem }]
}

/** Dredd's YAML parser reads the colon of an unquoted URL in {…} as the colon of a key. */
function findUnquotedUrls(source: Source): Finding[] {
  if (!mayHaveUnquotedUrl(source.text)) return []
  return listUnquotedFlowScalars(source)
    .filter(({ value }) => String(value).includes('://'))
    .map(({ path, value }) => ({
      source,
      path,
      problem: `${value} needs quotes here, or Dredd cannot read the file`,
    }))
}

/** Whether a line has a `{` that another line closes, or a `{` before an unquoted URL. Parsing with
 *  positions is slow, so a file without such a line is not parsed. */
function mayHaveUnquotedUrl(text: string): boolean {
  return text.split('\n').some((line) => {
    const isOpen = line.split('{').length > line.split('}').length
    return isOpen || /\{.*[^'"\w]\w+:\/\//.test(line)
  })
}
