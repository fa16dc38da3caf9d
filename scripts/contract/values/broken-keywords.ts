/** Which promises of a schema an invalid value breaks. */
import { Ajv, type ErrorObject } from 'ajv'
import { mapValues, type Schema } from '../../model/schema.ts'
import { WRONG_FORMATS } from './invalid-values.ts'

export interface BrokenKeyword {
  /** The field, as in promises.ts: `*` stands for the entries of a list or map. */
  name: string
  keyword: string
}

const ajv = new Ajv({
  strict: false,
  validateSchema: false,
  allErrors: true,
  formats: mapValues(WRONG_FORMATS, (wrong) => (text: string) => !wrong.includes(text)),
  // Other formats are not checked.
  logger: false,
})

/** Every keyword that the value breaks, in the whole schema. A value of a wrong type tests no other keyword beside
 *  `type`, such as `enum`: a service without that keyword refuses it, too. */
export function listBroken(schema: Schema, value: unknown, name = ''): BrokenKeyword[] {
  ajv.validate(schema, value)
  const errors = ajv.errors ?? []
  const mistyped = new Set(errors.filter(({ keyword }) => keyword === 'type').map(placeOf))
  const tested = errors.filter((error) => error.keyword === 'type' || !mistyped.has(placeOf(error)))
  return tested.map(({ keyword, schemaPath, params }) => {
    const fields = [name, ...listFields(schemaPath.split('/').slice(1, -1))]
    if (keyword === 'required') fields.push(params.missingProperty)
    return { name: fields.filter((field) => field !== '').join('.'), keyword }
  })
}

function placeOf({ instancePath, schemaPath }: ErrorObject): string {
  return `${instancePath} ${schemaPath.slice(0, schemaPath.lastIndexOf('/'))}`
}

/** The names of the fields to which the steps through a schema lead. */
function listFields([step, key = '', ...rest]: string[]): string[] {
  if (step === undefined) return []
  if (step === 'properties') return [key, ...listFields(rest)]
  if (step === 'items' || step === 'additionalProperties')
    return ['*', ...listFields([key, ...rest])]
  // A number follows `oneOf`.
  return listFields(rest)
}
