/** The currencies that the account uses: forms offer them before the others, and filters offer no others. */
import { listUsedCurrencies } from '../../../records/payments.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { hasPermission, type Visit } from '../page.ts'
import { currencyName, hasCurrencies } from './amounts.ts'

interface Field<T> {
  schema: Schema
  parts?: T[]
}

/** The fields with the account's own currencies first, and the others by name. The most used
 *  currency becomes the default. Filters have only the own ones, unless there are none. Users without
 *  access to payments get the currencies by name. */
export async function withOwnCurrencies<T extends Field<T>>(
  { scope, user }: Visit,
  fields: readonly T[],
): Promise<T[]> {
  const needsOwn = ({ schema, parts = [] }: Field<T>): boolean =>
    hasCurrencies(schema.items ?? schema) || parts.some(needsOwn)
  if (!fields.some(needsOwn)) return [...fields]
  const own = hasPermission(user, 'finance', 'read') ? await listUsedCurrencies(scope) : []
  const order = (field: T): T => ({
    ...field,
    schema: orderCurrencies(field.schema, own),
    ...(field.parts && { parts: field.parts.map(order) }),
  })
  return fields.map(order)
}

function orderCurrencies(schema: Schema, own: string[]): Schema {
  if (schema.items)
    return hasCurrencies(schema.items) && own.length > 0
      ? { ...schema, items: { ...schema.items, enum: own } }
      : { ...schema, items: orderCurrencies(schema.items, own) }
  if (!hasCurrencies(schema)) return schema
  const others = (schema.enum ?? [])
    .filter((value) => !own.includes(`${value}`))
    .sort((one, other) => currencyName(`${one}`).localeCompare(currencyName(`${other}`), 'en'))
  return { ...schema, enum: [...own, ...others], ...(own[0] && { default: own[0] }) }
}
