/** When Ajv refuses a schema, the faulty schema may be one inside it, or one that it refers to.
 *  `failAtCulprit` finds the faulty one. */
import { locate } from '../model/references.ts'
import { listSubschemas, mapSubschemas, type Schema } from '../model/schema.ts'
import {
  fail,
  isObject,
  type Located,
  type Path,
  type Place,
  type Sources,
  valueAt,
} from '../model/source.ts'
import { CHECKING_CODE, newAjv, withoutAnnotations } from './ajv.ts'

/** Throws `ContractError` at the keyword that is wrong, or at `place` if no schema is wrong by
 *  itself. */
export function failAtCulprit(sources: Sources, place: Place, error: Error): never {
  // The parameters of an operation can also be declared by the path item above it.
  const parent = { ...place, path: place.path.slice(0, -1) }
  for (const schema of [place, parent].flatMap((each) => listSchemas(sources, each))) {
    const reason = findReason(schema.value)
    if (reason === undefined) continue
    const { path, problem } = describe(schema, reason)
    fail(schema.source, path, problem)
  }
  fail(
    place.source,
    place.path,
    `this is, or refers to, a schema that Ajv refuses: ${error.message}`,
  )
}

/** All schemas below the place and behind references, the innermost first. */
function listSchemas(sources: Sources, place: Place): Located<Schema>[] {
  const seen = new Set<unknown>()
  const visitSchema = (placed: Located<Schema>): Located<Schema>[] => {
    const { source, path, value } = placed
    if (seen.has(value)) return []
    seen.add(value)
    if (value.$ref) return visitSchema(locate(sources, source, value.$ref) as Located<Schema>)
    const inner = listSubschemas(value).flatMap(({ subschema, steps }) =>
      visitSchema({ source, path: [...path, ...steps], value: subschema }),
    )
    return [...inner, placed]
  }
  const visitPart = ({ source, path, value }: Located): Located<Schema>[] => {
    if (!isObject(value) || seen.has(value)) return []
    if (typeof value.$ref === 'string') return visitPart(locate(sources, source, value.$ref))
    if (isSchemaPath(path)) return visitSchema({ source, path, value: value as Schema })
    seen.add(value)
    return Object.entries(value).flatMap(([key, child]) =>
      visitPart({ source, path: [...path, key], value: child }),
    )
  }
  return visitPart({ ...place, value: valueAt(place.source.root, place.path) })
}

function isSchemaPath(path: Path): boolean {
  const isComponent = path.slice(0, -1).includes('schemas')
  return isComponent || path.includes('schema') || path.at(-1) === 'payload'
}

/** Why Ajv refuses the schema without its subschemas. Undefined if Ajv accepts it. */
function findReason(schema: Schema): string | undefined {
  try {
    newAjv(CHECKING_CODE).compile(mapSubschemas(withoutAnnotations(schema), () => ({})))
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

function describe(
  { path, value }: Located<Schema>,
  reason: string,
): { path: Path; problem: string } {
  const [, unknown] = /unknown keyword: "(.+?)"/.exec(reason) ?? []
  if (unknown !== undefined)
    return {
      path: [...path, unknown],
      problem: `${unknown} is no keyword of a schema: correct it, or begin it with x-`,
    }
  if (/unknown format/.test(reason))
    return {
      path: [...path, 'format'],
      problem: `the format ${value.format} is not supported: use another one, or a pattern`,
    }
  if (/regular expression/i.test(reason))
    return {
      path: [...path, 'pattern'],
      problem: `the pattern ${value.pattern} is no regular expression: correct it`,
    }
  return { path, problem: `is no valid schema: ${reason}: correct it` }
}
