/** The updates that sequences of requests make. */
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { requestSchema } from '../words/records.ts'
import { findRule } from '../words/refusals.ts'
import type { LinkedKind } from './linked-kinds.ts'
import { variant } from './valid-values.ts'
import { isValid } from './validity.ts'

type Json = Record<string, unknown>

/** Bodies that change a state, another field, or both. */
export function listBodies(contract: Contract, { update, words }: LinkedKind): Json[] {
  const { states = {}, fixed_when = {} } = words
  const changes = Object.entries(states).flatMap(([name, next]) =>
    Object.keys(next).map((value): Json => ({ [name]: value })),
  )
  const fields = listSimpleFields(contract, update).filter(([name]) => !(name in states))
  const others = fields.flatMap(([name, values]) =>
    values.map((value): Json => ({ [name]: value })),
  )
  const free = others.findLast((body) => !Object.keys(body).some((name) => name in fixed_when))
  const both = free === undefined ? [] : changes.map((change) => ({ ...free, ...change }))
  return [...changes, ...others, ...both]
}

/** Fields with text or a number that no other rule of the contract refuses, and two values of
 *  each. */
function listSimpleFields(contract: Contract, update: Operation): [string, unknown[]][] {
  const { properties = {} } = requestSchema(contract, update)
  return Object.entries(properties).flatMap(([name, schema]): [string, unknown[]][] => {
    const isSimple = ['string', 'integer', 'number'].includes(String(schema.type))
    if (!isSimple || schema.format === 'uuid' || findRule(contract, update, name)) return []
    const values = [0, 1].map((index) => variant(schema, index))
    return [[name, values.filter((value) => isValid(schema, value))]]
  })
}
