/** The optional fields of responses. A field that is never sent is a fault of the service or of the
 *  contract. */
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import type { Schema } from '../model/schema.ts'
import { responseSchema } from '../words/records.ts'

/** The optional fields that the operation can send, for example `data.*.note`: `*` stands for the
 *  entries of a list. `x-returned-by` of a field names the only operations that send the field. */
export function listOptionalFields(contract: Contract, operation: Operation): string[] {
  const found = new Set<string>()
  const visit = (schema: Schema, place: string[]): void => {
    for (const alternative of [...(schema.oneOf ?? []), ...(schema.anyOf ?? [])])
      visit(alternative, place)
    if (schema.items) visit(schema.items, [...place, '*'])
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const senders = property['x-returned-by'] as string[] | undefined
      if (senders && !senders.includes(operation.id)) continue
      if (!schema.required?.includes(name)) found.add([...place, name].join('.'))
      visit(property, [...place, name])
    }
  }
  visit(responseSchema(contract, operation), [])
  return [...found]
}

/** Whether the body has `field`, one of `listOptionalFields`. */
export function hasField(body: unknown, field: string): boolean {
  const [name = '', ...rest] = field.split('.')
  if (typeof body !== 'object' || body === null) return false
  const own = Object.hasOwn(body, name) ? [body[name as keyof typeof body]] : []
  const values = name === '*' ? Object.values(body) : own
  return rest.length === 0
    ? values.length > 0
    : values.some((value) => hasField(value, rest.join('.')))
}
