/** Fields whose type depends on a field beside them: the expected value of a screening question depends on
 *  its operator. */
import { EXPECTED_TYPES, type ScreeningOperator } from '../../../records/screening.ts'
import type { Draft } from './draft.ts'
import type { FormField } from './field.ts'

/** Connects the fields of an object by `x-depends-on`. */
export function withDrivers(fields: FormField[]): FormField[] {
  const driverOf = ({ schema }: FormField): FormField | undefined =>
    fields.find(({ name }) => name === schema['x-depends-on'])
  const drivers = new Set(fields.map(driverOf))
  return fields.map((field) => ({
    ...field,
    ...(field.kind === 'dependent' && { driver: driverOf(field) }),
    ...(drivers.has(field) && { refreshesForm: true }),
  }))
}

/** The field with the types that the selected option of its driver permits. */
export function narrow(field: FormField, draft: Draft): FormField {
  const { driver, schema } = field
  const option = draft.get(driver?.path ?? '') ?? driver?.schema.default
  const types = EXPECTED_TYPES[option as ScreeningOperator] ?? EXPECTED_TYPES.equals
  const possible = schema.oneOf?.filter(({ type = '' }) => types.includes(type)) ?? []
  const list = possible.find(({ type }) => type === 'array')
  const index = driver?.schema.enum?.indexOf(option) ?? -1
  return {
    ...field,
    ...(list ? { kind: 'scalars', schema: list } : { kind: 'scalar', schema: { oneOf: possible } }),
    hint: driver?.schema['x-enum-descriptions']?.[index],
  }
}
