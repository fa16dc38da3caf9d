/** Schemas as people read them: fields with their types, limits and meanings. */
import type { Schema } from '../../scripts/model/schema.ts'
import { type Content, type Html, html } from '../shared/html.ts'
import type { Api } from './api.ts'

export interface SchemaContext {
  api: Api
  markdown(text: string): Html
  /** Is it about what the service sends? There, what is always present goes without saying, and what is not is pointed out. */
  isAnswer?: boolean
  /** The address of a component's description. */
  schemaLink(name: string): string | undefined
}

/** The fields of an object, or of the items of an array. Nothing for what has none. */
export function fieldList(context: SchemaContext, given: Schema, inside: Schema[] = []): Content {
  const schema = context.api.follow(given)
  if (inside.includes(schema)) return undefined
  const path = [...inside, schema]
  if (schema.items) return fieldList(context, schema.items, path)
  const branches = [...(schema.oneOf ?? []), ...(schema.anyOf ?? []), ...(schema.allOf ?? [])]
  if (branches.length > 0) return branches.map((branch) => fieldList(context, branch, path))
  if (!schema.properties) return undefined
  const required = new Set(schema.required)
  return html`<ul class="fields">${Object.entries(schema.properties).map(([name, property]) =>
    fieldItem(context, { name, schema: property, isRequired: required.has(name) }, path),
  )}</ul>`
}

export interface FieldInput {
  name: string
  schema: Schema
  isRequired: boolean
  /** Where it is not that of the schema. */
  description?: string
  id?: string
}

export function fieldItem(
  context: SchemaContext,
  { name, schema, isRequired, description, id }: FieldInput,
  inside: Schema[] = [],
): Html {
  const target = context.api.follow(schema)
  const children = fieldList(context, schema, inside)
  return html`<li class="field"${id !== undefined && html` id="${id}"`}>
<div class="field-head">
<code class="field-name">${name}</code>
<span class="type">${typeOf(context, schema)}</span>
${presenceOf(context, isRequired)}
${target.deprecated && html`<span class="pill warn">deprecated</span>`}
</div>
${context.markdown(description ?? schema.description ?? target.description ?? '')}
${constraintsOf(context, schema)}
${children && childFields(name, children)}
</li>`
}

function childFields(name: string, children: Content): Html {
  return html`<details class="children">
<summary>Fields of <code>${name}</code></summary>
${children}
</details>`
}

function presenceOf({ isAnswer }: SchemaContext, isRequired: boolean): Content {
  if (isAnswer) return !isRequired && html` <span class="type">optional</span>`
  return isRequired && html` <span class="required">required</span>`
}

/** In words, such as `array of string or null`. */
export function typeOf(context: SchemaContext, given: Schema): Content {
  const { api, schemaLink } = context
  const schema = api.follow(given)
  const orNull = schema.nullable ? ' or null' : ''
  const component = componentOf(given)
  const link = component === undefined || !schema.properties ? undefined : schemaLink(component)
  if (link !== undefined) return html`<a href="${link}">${component}</a>${orNull}`
  if (schema.items) return html`array of ${typeOf(context, schema.items)}${orNull}`
  const branches = (schema.oneOf ?? schema.anyOf)?.map((branch) => typeOf(context, branch))
  if (branches) return joinContent(branches, ' or ')
  const format =
    schema.format === undefined || schema.format === 'int32' || schema.format === 'int64'
      ? ''
      : ` (${schema.format})`
  return `${schema.type ?? 'any'}${format}${orNull}`
}

/** What a value must meet. Nothing where everything of the type is allowed. */
export function constraintsOf(context: SchemaContext, given: Schema): Content {
  const schema = context.api.follow(given)
  const items = schema.items && context.api.follow(schema.items)
  const ownRules = (placed: Schema): Content[] => {
    const link = isLongChoice(context, placed)
      ? context.schemaLink(componentOf(placed) ?? '')
      : undefined
    return link === undefined
      ? rulesOf(context.api.follow(placed))
      : [html`one of the values of <a href="${link}">${componentOf(placed)}</a>`]
  }
  const rules = [
    ...ownRules(given),
    ...(schema.items && !items?.properties
      ? ownRules(schema.items).map((rule) => html`each ${rule}`)
      : []),
  ]
  const values =
    typeof schema.additionalProperties === 'object'
      ? typeOf(context, schema.additionalProperties)
      : undefined
  if (values !== undefined) rules.unshift(html`values: ${values}`)
  return (
    rules.length > 0 && html`<ul class="rules">${rules.map((rule) => html`<li>${rule}</li>`)}</ul>`
  )
}

/** Where there are more choices than this, they are shown once, with the component. */
const MAX_CHOICES = 20

function isLongChoice({ api }: SchemaContext, given: Schema): boolean {
  return given.$ref !== undefined && (api.follow(given).enum?.length ?? 0) > MAX_CHOICES
}

function componentOf({ $ref }: Schema): string | undefined {
  return $ref?.split('/').at(-1)
}

function rulesOf(schema: Schema): Content[] {
  const {
    minLength,
    maxLength,
    minItems,
    maxItems,
    minimum,
    maximum,
    maxProperties,
    pattern,
    uniqueItems,
  } = schema
  const choices = schema.enum?.filter((value) => value !== null)
  return [
    schema.const !== undefined && html`always ${code(schema.const)}`,
    choices && choices.length > 0 && html`one of ${joinContent(choices.map(code), ' ')}`,
    range(minimum, maximum, ''),
    range(minLength, maxLength, 'character'),
    range(minItems, maxItems, 'item'),
    range(undefined, maxProperties, 'entry', 'entries'),
    uniqueItems && 'no item twice',
    pattern !== undefined && html`matches <code class="pattern">${pattern}</code>`,
    schema.default !== undefined && html`default ${code(schema.default)}`,
  ].filter((rule) => rule !== false && rule !== undefined)
}

function range(
  low: number | undefined,
  high: number | undefined,
  unit: string,
  plural = `${unit}s`,
): Content {
  if (low === undefined && high === undefined) return undefined
  const units = (count: number) => (unit === '' ? '' : ` ${count === 1 ? unit : plural}`)
  if (high === undefined) return `at least ${low}${units(low ?? 0)}`
  if (low === undefined || (unit !== '' && low === 0))
    return high === 0 ? `no${units(0)}` : `at most ${high}${units(high)}`
  return low === high ? `exactly ${low}${units(low)}` : `${low} to ${high}${units(high)}`
}

function code(value: unknown): Html {
  return html`<code>${typeof value === 'string' && value !== '' ? value : JSON.stringify(value)}</code>`
}

export function joinContent(parts: Content[], separator: string): Content {
  return parts.map((part, index) => [index > 0 && separator, part])
}
