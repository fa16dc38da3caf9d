/** Kinds of records, with their references to each other: `x-refers-to` and `x-when-deleted` of
 *  openapi.yaml. Also the bodies of their updates. */
import type { Contract } from '../../../model/contract.ts'
import type { JsonObject } from '../../../model/json.ts'
import type { Operation } from '../../../model/operations.ts'
import type { Schema } from '../../../model/schema.ts'
import {
  type RecordWords,
  readRecordWords,
  requestSchema,
  responseSchema,
} from '../../../words/records.ts'
import { findRule } from '../../../words/refusals.ts'
import { type CrudKind, listCrudKinds } from '../../record-kinds.ts'
import type { Run } from '../../run.ts'
import { variants } from '../../values/valid-values.ts'
import { isValid } from '../../values/validity.ts'

export interface Reference {
  field: string
  /** The name of the kind that the field refers to. */
  to: string
  isRequired: boolean
  /** `cleared`: deleting the record that the field refers to sets the field to null. `refused`: the
   *  service refuses to delete that record. */
  whenDeleted: 'cleared' | 'refused'
  /** Values that the record to which the field refers must have. */
  needs: JsonObject
}

export interface LinkedKind extends CrudKind {
  words: RecordWords
  references: Reference[]
}

export function listLinkedKinds(contract: Contract): LinkedKind[] {
  return listCrudKinds(contract).map((kind) => ({
    ...kind,
    words: readRecordWords(contract, kind.get),
    references: listReferences(contract, kind.create, kind.get),
  }))
}

function listReferences(contract: Contract, create: Operation, get: Operation): Reference[] {
  const { properties = {}, required = [] } = requestSchema(contract, create)
  const stored = responseSchema(contract, get).properties ?? {}
  return Object.entries(properties).flatMap(([field, schema]): Reference[] => {
    const to = schema['x-refers-to']
    const whenDeleted = stored[field]?.['x-when-deleted']
    if (typeof to !== 'string' || (whenDeleted !== 'cleared' && whenDeleted !== 'refused'))
      return []
    const needs = (schema['x-refers-with'] ?? {}) as JsonObject
    return [{ field, to, isRequired: required.includes(field), whenDeleted, needs }]
  })
}

/** The kinds of which `x-refers-to` and `x-when-deleted` describe each reference. */
export function listDescribedKinds({ contract, records }: Run): LinkedKind[] {
  return listLinkedKinds(contract).filter(({ create, references }) => {
    const fields = Object.keys(requestSchema(contract, create).properties ?? {})
    return fields
      .filter((name) => records.kindOf(name))
      .every((name) => references.some(({ field }) => field === name))
  })
}

/** The kind, the kinds that refer to it, and the kinds to which any of these refers, also
 *  indirectly. A kind comes after the kinds to which it refers. */
export function listNeighbours(kinds: LinkedKind[], kind: LinkedKind): LinkedKind[] {
  const referring = kinds.filter(({ references }) => references.some(({ to }) => to === kind.name))
  return addReferred(kinds, [kind, ...referring], () => true)
}

/** The wanted kinds, and the kinds to which they must refer, also indirectly. A kind comes after
 *  the kinds to which it must refer. */
export function addNeeded(kinds: LinkedKind[], wanted: LinkedKind[]): LinkedKind[] {
  return addReferred(kinds, wanted, ({ isRequired }) => isRequired)
}

/** The wanted kinds, and the kinds to which the references that `follows` accepts lead. */
export function addReferred(
  kinds: LinkedKind[],
  wanted: LinkedKind[],
  follows: (reference: Reference) => boolean,
): LinkedKind[] {
  const found = new Set<LinkedKind>()
  const add = (kind: LinkedKind): void => {
    if (found.has(kind)) return
    const names = kind.references.filter(follows).map(({ to }) => to)
    for (const other of kinds) if (names.includes(other.name) && other !== kind) add(other)
    found.add(kind)
  }
  for (const kind of wanted) add(kind)
  return [...found]
}

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
