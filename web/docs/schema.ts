/** Renders schemas: fields with their types, constraints and descriptions. */
import {
  isNotBlankPattern,
  readDefault,
  type Schema,
  TEXT_PATTERN,
} from '../../scripts/model/schema.ts'
import { type Content, type Html, html } from '../shared/html.ts'
import type { Api } from './api.ts'

export interface SchemaContext {
  api: Api
  markdown(text: string): Html
  /** True for what the service sends: optional fields are marked. False or undefined for what the
   *  service takes: required fields are marked. */
  isOutput?: boolean
  /** The start of the IDs of fields. Undefined: the fields have no IDs. */
  fieldIds?: string
  /** The URL of a component's description. Undefined for an unknown component. */
  schemaLink(name: string): string | undefined
}

/** The fields of an object and of each branch of its `oneOf`, `anyOf` and `allOf`, or of the items
 *  of an array. Undefined: there are none. */
export function fieldList(context: SchemaContext, reference: Schema): Content {
  const schema = context.api.follow(reference)
  if (schema.items) return fieldList(context, schema.items)
  const lists = [
    ownFields(context, schema),
    ...listBranches(schema).map((branch, index) =>
      branchFields(below(context, componentName(branch) ?? String(index + 1)), branch),
    ),
  ].filter(Boolean)
  return lists.length > 0 ? lists : undefined
}

/** The context of fields inside `name`. */
function below(context: SchemaContext, name: string): SchemaContext {
  return { ...context, fieldIds: context.fieldIds && `${context.fieldIds}-${name}` }
}

function ownFields(context: SchemaContext, schema: Schema): Content {
  if (!schema.properties) return undefined
  const required = new Set(schema.required)
  const fields = Object.entries(schema.properties).map(([name, property]) =>
    fieldItem(context, { name, schema: property, isRequired: required.has(name) }),
  )
  return html`<ul class="fields">${fields}</ul>`
}

export function listBranches({ oneOf = [], anyOf = [], allOf = [] }: Schema): Schema[] {
  return [...oneOf, ...anyOf, ...allOf]
}

/** The fields of a branch. If the branch is a component, they are folded below its name. */
function branchFields(context: SchemaContext, branch: Schema): Content {
  const fields = fieldList(context, branch)
  const name = componentName(branch)
  if (!fields || name === undefined) return fields
  return folded(html`<code>${name}</code>`, fields)
}

export interface FieldInput {
  name: string
  schema: Schema
  isRequired: boolean
  /** Replaces the description of the schema. */
  description?: string
  example?: unknown
  /** The ID of the element. */
  id?: string
}

export function fieldItem(
  context: SchemaContext,
  {
    name,
    schema,
    isRequired,
    description,
    example,
    id = below(context, name).fieldIds,
  }: FieldInput,
): Html {
  const target = context.api.follow(schema)
  const children = fieldList({ ...context, fieldIds: id }, schema)
  const presence = describePresence(context, isRequired)
  return html`<li class="field"${id !== undefined && html` id="${id}"`}>
    <div class="field-head">
      <code class="field-name">${name}</code>
      <span class="type">${formatType(context, schema)}</span>
      ${presence && html` <span class="${isRequired ? 'required' : 'type'}">${presence}</span>`}
      ${target.deprecated && html`<span class="pill warn">deprecated</span>`}
    </div>
    ${context.markdown(description ?? schema.description ?? target.description ?? '')}
    ${constraintList(context, schema)}
    ${example !== undefined && html`<p class="rule">for example <code>${String(example)}</code></p>`}
    ${children && folded(html`Fields of <code>${name}</code>`, children)}
  </li>`
}

function folded(summary: Html, content: Content): Html {
  return html`<details class="children">
    <summary>${summary}</summary>
    ${content}
  </details>`
}

/** Undefined for the usual case: required in what the service sends, optional in what it takes. */
export function describePresence(
  { isOutput }: SchemaContext,
  isRequired: boolean,
): 'optional' | 'required' | undefined {
  if (isOutput) return isRequired ? undefined : 'optional'
  return isRequired ? 'required' : undefined
}

/** Returns the type in words, for example `array of string or null`. */
export function formatType(context: SchemaContext, reference: Schema): Content {
  const { api, schemaLink } = context
  const schema = api.follow(reference)
  const orNull = schema.nullable ? ' or null' : ''
  const component = componentName(reference)
  const link =
    component === undefined || schema.properties === undefined ? undefined : schemaLink(component)
  if (link !== undefined) return html`<a href="${link}">${component}</a>${orNull}`
  if (schema.items) return html`array of ${formatType(context, schema.items)}${orNull}`
  const branches = (schema.oneOf ?? schema.anyOf)?.map((branch) => formatType(context, branch))
  if (branches) return joinContent(branches, ' or ')
  const isShown = schema.format !== undefined && !/^(int(32|64)|double)$/.test(schema.format)
  const format = isShown ? ` (${schema.format})` : ''
  return `${[schema.type ?? 'any'].flat().join(' or ')}${format}${orNull}`
}

/** Returns false if there are no constraints. */
export function constraintList(context: SchemaContext, reference: Schema): Content {
  const constraints = listConstraints(context, reference)
  return (
    constraints.length > 0 &&
    html`<ul class="rules">${constraints.map((constraint) => html`<li>${constraint}</li>`)}</ul>`
  )
}

/** The constraints of a schema and of its items. Leaves out items with fields: `fieldList` shows
 *  them. */
export function listConstraints(context: SchemaContext, reference: Schema): Content[] {
  const { additionalProperties, items } = context.api.follow(reference)
  const hasFields = items !== undefined && context.api.follow(items).properties !== undefined
  const itemConstraints = items && !hasFields ? describeConstraints(context, items) : []
  return [
    typeof additionalProperties === 'object' &&
      html`values: ${formatType(context, additionalProperties)}`,
    ...describeConstraints(context, reference),
    ...itemConstraints.map((constraint) => html`each ${constraint}`),
  ].filter((constraint) => constraint !== false)
}

/** If the `enum` of a component has more values, a link to the component replaces them. */
const MAX_LISTED_VALUES = 20

function describeConstraints(context: SchemaContext, reference: Schema): Content[] {
  const schema = context.api.follow(reference)
  const component = componentName(reference)
  if (component !== undefined && (schema.enum?.length ?? 0) > MAX_LISTED_VALUES) {
    const link = context.schemaLink(component)
    if (link !== undefined) return [html`one of the values of <a href="${link}">${component}</a>`]
  }
  return describeKeywords(context, schema)
}

export function componentName({ $ref }: Schema): string | undefined {
  return $ref?.split('/').at(-1)
}

function describeKeywords(context: SchemaContext, schema: Schema): Content[] {
  const options = schema.enum?.filter((value) => value !== null)
  const descriptions = schema['x-enum-descriptions']
  return [
    schema.const !== undefined && html`always ${code(schema.const)}`,
    options && !descriptions && html`one of ${joinContent(options.map(code), ' ')}`,
    describeRange(schema.minimum, schema.maximum, ''),
    describeRange(schema.minLength, schema.maxLength, 'character'),
    describeRange(schema.minItems, schema.maxItems, 'item'),
    describeRange(undefined, schema.maxProperties, 'entry', 'entries'),
    schema.uniqueItems && 'no item twice',
    schema.pattern !== undefined && describePattern(schema.pattern),
    readDefault(schema) !== undefined && html`default ${code(readDefault(schema))}`,
    options && descriptions && html`one of${optionList(context, options, descriptions)}`,
  ].filter((rule) => rule !== false && rule !== undefined)
}

function optionList(
  context: SchemaContext,
  options: unknown[],
  descriptions: readonly string[],
): Html {
  const items = options.map(
    (value, index) => html`<li>${code(value)}: ${context.markdown(descriptions[index] ?? '')}</li>`,
  )
  return html`<ul class="options">${items}</ul>`
}

function describePattern(pattern: string): Content {
  if (isNotBlankPattern(pattern)) return 'not only white space'
  return pattern === TEXT_PATTERN ? 'no NUL' : html`matches <code class="pattern">${pattern}</code>`
}

function describeRange(
  low: number | undefined,
  high: number | undefined,
  unit: string,
  plural = `${unit}s`,
): Content {
  if (low === undefined && high === undefined) return undefined
  const units = (count: number) => (unit === '' ? '' : ` ${count === 1 ? unit : plural}`)
  if (high === undefined) return `at least ${low}${units(low ?? 0)}`
  // A length is never below 0.
  const hasNoMinimum = low === undefined || (unit !== '' && low === 0)
  if (hasNoMinimum) return high === 0 ? `no${units(0)}` : `at most ${high}${units(high)}`
  return low === high ? `exactly ${low}${units(low)}` : `${low} to ${high}${units(high)}`
}

function code(value: unknown): Html {
  return html`<code>${typeof value === 'string' && value !== '' ? value : JSON.stringify(value)}</code>`
}

export function joinContent(parts: Content[], separator: string): Content {
  return parts.map((part, index) => [index > 0 && separator, part])
}
