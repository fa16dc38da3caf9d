/** The bodies of the updates in sequences of requests. */
import type { Contract } from '../../model/contract.ts'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import type { Schema } from '../../model/schema.ts'
import { requestSchema } from '../../words/records.ts'
import { findRule } from '../../words/refusals.ts'
import { variants } from '../values/valid-values.ts'
import { isValid } from '../values/validity.ts'
import type { LinkedKind } from './sequence-kinds.ts'

/** Bodies that change a state, another field, or both. */
export function listUpdateBodies(contract: Contract, { update, words }: LinkedKind): JsonObject[] {
  const { states = {}, fixed_when = {} } = words
  const changes = Object.entries(states).flatMap(([name, next]) =>
    Object.keys(next).map((value): JsonObject => ({ [name]: value })),
  )
  const others = listSimpleFields(contract, update)
    .filter(([name]) => !(name in states))
    .flatMap(([name, schema]) =>
      variants(schema, 2)
        .filter((value) => isValid(schema, value))
        .map((value): JsonObject => ({ [name]: value })),
    )
  const unfixed = others.findLast((body) => !Object.keys(body).some((name) => name in fixed_when))
  const both = unfixed === undefined ? [] : changes.map((change) => ({ ...unfixed, ...change }))
  return [...changes, ...others, ...both]
}

/** The fields with text or a number, except IDs and the fields that `x-refusals` names. */
function listSimpleFields(contract: Contract, update: Operation): [string, Schema][] {
  const { properties = {} } = requestSchema(contract, update)
  return Object.entries(properties).filter(
    ([name, { type, format }]) =>
      ['string', 'integer', 'number'].includes(String(type)) &&
      format !== 'uuid' &&
      !findRule(contract, update, name),
  )
}
