/** Fields of a schema, parameters and headers as Markdown lists. */
import type { Schema } from '../../../scripts/model/schema.ts'
import {
  componentName,
  describePresence,
  type FieldInput,
  formatType,
  listBranches,
  listConstraints,
  type SchemaContext,
} from '../schema.ts'
import { inlineText, listItem } from './text.ts'

/** The fields of an object and of each branch of its `oneOf`, `anyOf` and `allOf`, or of the items
 *  of an array. Empty if there are none. */
export function fieldLines(context: SchemaContext, reference: Schema, indent = 0): string[] {
  const schema = context.api.follow(reference)
  if (schema.items) return fieldLines(context, schema.items, indent)
  const required = new Set(schema.required)
  const ownFields = Object.entries(schema.properties ?? {}).flatMap(([name, property]) => [
    listItem(
      describeField(context, { name, schema: property, isRequired: required.has(name) }),
      indent,
    ),
    ...fieldLines(context, property, indent + 1),
  ])
  const branches = listBranches(schema)
  return [...ownFields, ...branches.flatMap((branch) => branchLines(context, branch, indent))]
}

/** The fields of a branch. If the branch is a component, they stand below its name. */
function branchLines(context: SchemaContext, branch: Schema, indent: number): string[] {
  const name = componentName(branch)
  if (name === undefined) return fieldLines(context, branch, indent)
  const fields = fieldLines(context, branch, indent + 1)
  return fields.length > 0 ? [listItem(`${name}:`, indent), ...fields] : []
}

/** The name, type, constraints and description of a field. */
export function describeField(
  context: SchemaContext,
  { name, schema, isRequired, description }: FieldInput,
): string {
  const target = context.api.follow(schema)
  const notes = [
    inlineText(formatType(context, schema)),
    describePresence(context, isRequired),
    target.deprecated && 'deprecated',
    ...listConstraints(context, schema).map(inlineText),
  ]
  const text = description ?? schema.description ?? target.description ?? ''
  const head = `\`${name}\` (${notes.filter((note) => note).join('; ')})`
  return text === '' ? head : `${head}: ${text}`
}
