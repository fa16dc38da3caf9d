/** What Dredd 14 would drop without a word, send wrongly or not start with. */
import { isMap, isPair, isScalar, isSeq, visit } from 'yaml'
import type { Contract, Finding, Operation, Parameter } from '../generate/contract.ts'
import { at, type Path, type Source } from '../generate/source.ts'

export function dreddSafe(contract: Contract): Finding[] {
  return [
    ...contract.operations.flatMap((operation) => [
      ...operation.parameters.flatMap((parameter) => ofParameter(operation, parameter)),
      ...ofBody(operation),
      ...ofSummary(contract, operation),
    ]),
    ...Object.values(contract.sources).flatMap(unquotedAddresses),
  ]
}

function ofParameter(
  { id }: Operation,
  { name, in: where, required, style, schema }: Parameter,
): Finding[] {
  const place = { source: schema.source, path: schema.path.slice(0, -1) }
  const what = `parameter ${name} of ${id}`
  if (where === 'cookie')
    return [{ ...place, problem: `${what} is a cookie, which Dredd never sends: use a header` }]
  if (style === 'deepObject')
    return [
      {
        ...place,
        problem: `${what} is a deepObject, which Dredd sends wrongly: write each name out, such as page[size]`,
      },
    ]
  if (where === 'path' && !/^\w+$/.test(name))
    return [
      {
        ...place,
        problem: `${what} must be of letters, digits and _, or Dredd drops the operation`,
      },
    ]
  if (where === 'query' && !/^\w+(\[\w+\])*$/.test(name))
    return [
      {
        ...place,
        problem: `${what} must be of letters, digits, _ and pairs of [], or Dredd drops the operation`,
      },
    ]
  if (required && at(place.source.root, [...place.path, 'example']) === undefined)
    return [
      {
        ...place,
        problem: `${what} is required and has no example, without which Dredd does not start: add one beside its schema`,
      },
    ]
  return []
}

function ofBody({ id, body }: Operation): Finding[] {
  if (!body) return []
  const mediaType = body.path.slice(0, -1)
  const has = (key: string): boolean => at(body.source.root, [...mediaType, key]) !== undefined
  if (has('example') || has('examples')) return []
  return [
    {
      source: body.source,
      path: mediaType,
      problem: `the body of ${id} has no example: add one, or Dredd sends empty texts`,
    },
  ]
}

/** Dredd names a transaction by path and summary. */
function ofSummary({ operations }: Contract, { id, path, summary, place }: Operation): Finding[] {
  const here = { source: place.source, path: place.path }
  if (summary === '')
    return [{ ...here, problem: `${id} has no summary, by which Dredd's hooks know it: add one` }]
  const first = operations.find(
    (operation) => operation.path === path && operation.summary === summary,
  )
  if (first?.id === id) return []
  return [
    {
      ...here,
      problem: `${id} has the summary of ${first?.id}, by which Dredd's hooks know it: give each its own`,
    },
  ]
}

/** Dredd's YAML takes the colon of an address in {…} for that of a key. */
function unquotedAddresses(source: Source): Finding[] {
  const findings: Finding[] = []
  visit(source.document, {
    Scalar(_, node, ancestors) {
      const isInFlow = ancestors.some((ancestor) => isMap(ancestor) && ancestor.flow)
      if (node.type !== 'PLAIN' || !isInFlow || !String(node.value).includes('://')) return
      const path = pathOf([...ancestors, node])
      findings.push({
        source,
        path,
        problem: `${node.value} must be in quotes here, or Dredd cannot read the file`,
      })
    },
  })
  return findings
}

function pathOf(nodes: readonly unknown[]): Path {
  return nodes.flatMap((node, index): Path => {
    if (isPair(node) && isScalar(node.key)) return [String(node.key.value)]
    return isSeq(node) ? [node.items.indexOf(nodes[index + 1])] : []
  })
}
