/** Which promises of a schema an invalid value breaks. */
import { Ajv } from 'ajv'
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

/** Every keyword that the value breaks, in the whole schema. */
export function listBroken(schema: Schema, value: unknown, name = ''): BrokenKeyword[] {
  ajv.validate(schema, value)
  return (ajv.errors ?? []).map(({ keyword, schemaPath, params }) => {
    const fields = [name, ...listFields(schemaPath.split('/').slice(1, -1))]
    if (keyword === 'required') fields.push(params.missingProperty)
    return { name: fields.filter((field) => field !== '').join('.'), keyword }
  })
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
