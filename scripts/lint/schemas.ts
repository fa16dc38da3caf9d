/** Rules that keep the schemas readable for people and for the generators of other languages. */
import { listComponents } from '../model/components.ts'
import type { Contract } from '../model/contract.ts'
import { hasNamesAsKeys, listNodes } from '../model/nodes.ts'
import { inlineReferences, listReferences } from '../model/references.ts'
import { listSubschemas, mapSubschemas, type Schema, toJsonSchema } from '../model/schema.ts'
import { type Finding, isObject, type Located, type Path, type Source } from '../model/source.ts'

interface Component extends Located<Schema> {
  name: string
}

/** Defaults that are arrays or objects, which some generators refuse. */
export function findUnportableDefaults({ sources }: Contract): Finding[] {
  return Object.values(sources).flatMap((source) =>
    listNodes(source.root)
      .filter(({ path, value }) => !hasNamesAsKeys(path) && isObject(value.default))
      .map(({ path }) => ({
        source,
        path: [...path, 'default'],
        problem: 'this default is an array or object, which some generators refuse: use x-default',
      })),
  )
}

/** References of asyncapi.yaml to other files. AsyncAPI tools read asyncapi.yaml alone. */
export function findOutsideReferences({ asyncapi }: Contract): Finding[] {
  return listReferences(asyncapi)
    .filter(({ ref }) => !ref.startsWith('#'))
    .map(({ path, ref }) => ({
      source: asyncapi,
      path,
      problem: `refers to ${ref} in another file: copy the schema to this file`,
    }))
}

/** Schemas of asyncapi.yaml that differ from the schema of the same name in openapi.yaml. */
export function findDifferentSchemas({ sources, openapi, asyncapi }: Contract): Finding[] {
  const others = new Map(listSchemas(openapi).map((component) => [component.name, component]))
  return listSchemas(asyncapi).flatMap((component) => {
    const other = others.get(component.name)
    if (!other) return []
    const [here, there] = [component, other].map((placed) =>
      JSON.stringify(normalize(toJsonSchema(inlineReferences(sources, placed)))),
    )
    if (here === there) return []
    const problem = `${component.name} differs from ${component.name} of ${openapi.file}: correct one, or rename it`
    return [{ source: asyncapi, path: component.path, problem }]
  })
}

/** A copy of the schema without descriptions, examples and extensions. openapi.yaml and
 *  asyncapi.yaml write constants and null with different keywords: the copy has a constant in
 *  `enum`, and null in `type`, not in `oneOf`. */
function normalize(schema: Schema): Schema {
  const {
    description: _description,
    const: constant,
    examples: _examples,
    ...others
  } = mapSubschemas(schema, normalize)
  const entries = Object.entries(others).filter(([keyword]) => !keyword.startsWith('x-'))
  const plain: Schema = Object.fromEntries(entries.sort(([a], [b]) => a.localeCompare(b)))
  const [value, ...further] = (plain.oneOf ?? []).filter(({ type }) => type !== 'null')
  if (value && further.length === 0) return normalize({ ...value, ...orNull(value) })
  return constant === undefined ? plain : { enum: [constant], ...plain }
}

function orNull({ type, enum: options }: Schema): object {
  return { type: [type, 'null'], ...(options && { enum: [...options, null] }) }
}

/** Component schemas, properties and values of enumerations without a description. */
export function findUndescribed({ openapi, asyncapi }: Contract): Finding[] {
  return [openapi, asyncapi].flatMap((source) =>
    listSchemas(source).flatMap(({ name, path, value }) => [
      ...(value.description
        ? []
        : [{ source, path, problem: `${name} has no description: add one` }]),
      ...findUndescribedParts(source, name, path, value),
    ]),
  )
}

function findUndescribedParts(source: Source, name: string, path: Path, schema: Schema): Finding[] {
  const options = schema.enum?.length ?? 0
  const findings: Finding[] = []
  if (options !== (schema['x-enum-descriptions']?.length ?? 0))
    findings.push({
      source,
      path: [...path, 'enum'],
      problem: `${name} has ${options} values: describe each in x-enum-descriptions, in the same order`,
    })
  for (const { subschema, steps } of listSubschemas(schema)) {
    const here = [...path, ...steps]
    const isProperty = steps[0] === 'properties'
    const part = isProperty ? `${name}.${steps[1]}` : name
    if (isProperty && !subschema.$ref && !subschema.description)
      findings.push({ source, path: here, problem: `${part} has no description: add one` })
    findings.push(...findUndescribedParts(source, part, here, subschema))
  }
  return findings
}

function listSchemas(source: Source): Component[] {
  return listComponents(source)
    .filter(({ path }) => path[1] === 'schemas')
    .map((placed) => ({ ...(placed as Located<Schema>), name: String(placed.path.at(-1)) }))
}
