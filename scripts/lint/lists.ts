import { isList } from '../generate/resources.ts'
import type { Contract } from '../model/contract.ts'
import type { Operation, Parameter } from '../model/operations.ts'
import { dereference } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import { type Finding, valueAt } from '../model/source.ts'

/** Finds lists that lack parameters for pages, sort or filters, or that name them wrongly. Also
 *  finds sorts in the wrong order, and examples that show other sorts than the list declares. */
export function findListProblems(contract: Contract): Finding[] {
  return contract.operations
    .filter((operation) => isList(contract, operation))
    .flatMap((operation) => checkList(contract, operation))
}

function checkList(contract: Contract, { id, place, parameters, success }: Operation): Finding[] {
  const here = { source: place.source, path: [...place.path, 'parameters'] }
  const query = parameters.filter((parameter) => parameter.in === 'query')
  const names = query.map(({ name }) => name)
  const sort = query.find(({ name }) => name === 'sort')
  const sorts = sort ? listOptions(contract, sort) : []
  const fields = sorts.filter((name) => !name.startsWith('-'))
  const exampleSorts = readExampleSorts(success)
  const findings: Finding[] = []

  for (const name of ['page[number]', 'page[size]', 'page[after]'])
    if (!names.includes(name))
      findings.push({ ...here, problem: `${id} is a list: add the parameter ${name}` })
  if (!('link' in success.headers))
    findings.push({
      source: success.place.source,
      path: success.place.path,
      problem: `${id} is a list: add the header Link to its response`,
    })
  for (const name of names)
    if (!/^(page|filter)\[[a-z_]+\]$|^(sort|include|fields)$/.test(name))
      findings.push({
        ...here,
        problem: `${id} is a list: ${name} must be written like filter[created_after]`,
      })
  if (sort === undefined && exampleSorts?.length !== 0)
    findings.push({
      ...here,
      problem: `${id} declares no sort: add it, or show allowed_sorts: [] in its example`,
    })
  if (sort !== undefined && !names.some((name) => name.startsWith('filter[')))
    findings.push({ ...here, problem: `${id} declares no filter: add filter[…] parameters` })
  if (sort && sorts.join() !== fields.flatMap((name) => [name, `-${name}`]).join())
    findings.push({
      source: sort.schema.source,
      path: sort.schema.path,
      problem: `sort of ${id} must list each field, then its -field`,
    })
  if (exampleSorts && exampleSorts.join() !== fields.join())
    findings.push({
      source: success.place.source,
      path: [...success.place.path, ...ALLOWED_SORTS_PATH],
      problem:
        `the example of ${id} must show the allowed_sorts that its sort declares: ` +
        (fields.join(', ') || 'none'),
    })
  return findings
}

/** The path from a response to the sorts in its example. */
const ALLOWED_SORTS_PATH = ['content', 'application/json', 'example', 'meta', 'allowed_sorts']

function readExampleSorts({ place }: Operation['success']): string[] | undefined {
  return valueAt(place.source.root, [...place.path, ...ALLOWED_SORTS_PATH]) as string[] | undefined
}

function listOptions({ sources }: Contract, { schema }: Parameter): string[] {
  const { items = {} } = dereference(sources, schema).value as Schema
  const options = dereference(sources, { ...schema, value: items }).value as Schema
  return (options.enum ?? []).map(String)
}
