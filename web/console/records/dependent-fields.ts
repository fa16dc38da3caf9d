/** Fields whose type depends on a field beside them: the expected value of a screening question
 *  depends on its operator. */
import type { Draft } from './draft.ts'
import type { FormField } from './field.ts'

/** Links each dependent field to its driver: the field of the same object that its `x-depends-on`
 *  names. A driver reloads them when its value changes. */
export function withDrivers(fields: FormField[]): FormField[] {
  const driverOf = ({ schema }: FormField): FormField | undefined =>
    fields.find(({ name }) => name === schema['x-depends-on'])
  return fields.map((field) => {
    const dependents = fields.filter((other) => driverOf(other) === field).map(({ path }) => path)
    return {
      ...field,
      ...(field.kind === 'dependent' && { driver: driverOf(field) }),
      ...(dependents.length > 0 && { dependents }),
    }
  })
}

/** The field with the schema that `x-by-option` has for the selected option of the driver. Without
 *  a schema for this option, the first schema of `x-by-option`. */
export function resolveDependent(field: FormField, draft: Draft): FormField {
  const { driver, schema } = field
  const byOption = schema['x-by-option'] ?? {}
  const option = draft.get(driver?.path ?? '') ?? String(driver?.schema.default)
  const optionSchema = byOption[option] ?? Object.values(byOption)[0] ?? {}
  const isList = optionSchema.type === 'array'
  return {
    ...field,
    ...(isList
      ? { kind: 'scalars', schema: optionSchema }
      : { kind: 'scalar', schema: { oneOf: optionSchema.oneOf ?? [optionSchema] } }),
  }
}
