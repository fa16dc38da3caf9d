/** The fields of the records of a mock: as they were sent, with the defaults of the contract. */
import { isDeepStrictEqual } from 'node:util'
import { v7 as uuidv7 } from 'uuid'
import { isValid } from '../contract/values/validity.ts'
import { findTag, listOptions } from '../model/alternatives.ts'
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { mergeSchemas, readDefault, type Schema } from '../model/schema.ts'
import { isObject } from '../model/source.ts'
import {
  meetsCondition,
  type RecordWords,
  readRecordWords,
  requestSchema,
  responseSchema,
} from '../words/records.ts'

export type Json = Record<string, unknown>

export interface RecordRules {
  words: RecordWords
  /** The body of the request that creates a record. */
  creation: Schema
  record: Schema
}

/** The schemas of the rules have no references. */
export function readRules(
  contract: Contract,
  { create, get }: { create: Operation; get: Operation },
): RecordRules {
  return {
    words: readRecordWords(contract, get),
    creation: requestSchema(contract, create),
    record: responseSchema(contract, get),
  }
}

/** A record with the sent values, and with the initial values, defaults and nulls of the contract.
 *  All other fields come from the example, whose times move so that the record is created now. */
export function newRecord(
  { words, creation, record }: RecordRules,
  example: Json,
  sent: Json,
): Json {
  const now = new Date()
  const properties = propertiesOf(record, { ...example, ...sent })
  const base = moveTimes(example, properties, words.created, now)
  const values = {
    ...words.initial,
    ...nullsOf(flatten(creation, sent)),
    ...(complete(creation, sent) as Json),
    id: sent.id ?? uuidv7(),
  }
  const stored = Object.entries(values)
    .filter(([name]) => name in base || name in properties)
    .map(([name, value]) => [name, complete(properties[name] ?? {}, value)])
  return setConditionalFields(words, properties, { ...base, ...Object.fromEntries(stored) })
}

/** A record that the service has finished after its creation, for example a completed export. */
export function newFinishedRecord(rules: RecordRules, example: Json, sent: Json): Json {
  return newRecord({ ...rules, words: { ...rules.words, initial: undefined } }, example, sent)
}

interface Update {
  sent: Json
  isMergePatch: boolean
}

/** Returns `before` itself if the update changes nothing. */
export function updatedRecord(
  { words, record }: RecordRules,
  before: Json,
  { sent, isMergePatch }: Update,
): Json {
  const properties = propertiesOf(record, { ...before, ...sent })
  const after = { ...before }
  for (const [name, value] of Object.entries(sent))
    if (name in before || name in properties)
      after[name] = isMergePatch
        ? merge(before[name], value)
        : complete(properties[name] ?? {}, value)
  if (isDeepStrictEqual(before, after)) return before
  if (words.updated !== undefined) after[words.updated] = new Date().toISOString()
  return setConditionalFields(words, properties, after)
}

function setConditionalFields(
  { set_when = {} }: RecordWords,
  properties: Properties,
  record: Json,
): Json {
  const computed = Object.entries(set_when).map(([name, condition]) => {
    if (!meetsCondition(record, condition)) return [name, null]
    const isTime = properties[name]?.format === 'date-time'
    return [name, record[name] ?? (isTime ? new Date().toISOString() : null)]
  })
  return { ...record, ...Object.fromEntries(computed) }
}

type Properties = Readonly<Record<string, Schema>>

function propertiesOf(schema: Schema, value: Json): Properties {
  return flatten(schema, value).properties ?? {}
}

/** Merges the parts of `allOf`, and the alternative that the tag of the value chooses, into the
 *  schema. */
function flatten(schema: Schema, value: unknown): Schema {
  const { allOf = [], oneOf = [], ...rest } = schema
  const tag = findTag(oneOf)
  const choice =
    tag !== undefined && isObject(value)
      ? oneOf.find((alternative) => listOptions(alternative, tag).includes(value[tag]))
      : undefined
  const parts = choice ? [...allOf, choice] : allOf
  if (parts.length === 0) return schema
  return parts
    .map((part) => flatten(part, value))
    .reduce(mergeSchemas, choice ? rest : { ...rest, oneOf: schema.oneOf })
}

/** The value with the defaults of its parts, and its times in UTC. */
function complete(whole: Schema, value: unknown): unknown {
  const schema = flatten(whole, value)
  if (schema.oneOf) {
    const fits = schema.oneOf.find((option) => isValid(option, complete(option, value)))
    return complete(fits ?? {}, value)
  }
  if (Array.isArray(value)) return value.map((item) => complete(schema.items ?? {}, item))
  if (isObject(value)) return completeObject(schema, value)
  const isTime = schema.format === 'date-time' && typeof value === 'string'
  return isTime && !Number.isNaN(Date.parse(value)) ? new Date(value).toISOString() : value
}

function completeObject(schema: Schema, value: Json): Json {
  const { properties = {}, required = [] } = schema
  const defaults = Object.entries(properties).flatMap(([name, part]) => {
    const onlyOption = required.includes(name) && part.enum?.length === 1 ? part.enum[0] : undefined
    const preset = readDefault(part) ?? onlyOption
    return preset === undefined ? [] : [[name, preset]]
  })
  const sent = Object.entries(value).map(([name, part]) => [
    name,
    complete(properties[name] ?? {}, part),
  ])
  return { ...Object.fromEntries(defaults), ...Object.fromEntries(sent) }
}

function nullsOf({ properties = {} }: Schema): Json {
  const nullable = Object.entries(properties).filter(([, { nullable }]) => nullable)
  return Object.fromEntries(nullable.map(([name]) => [name, null]))
}

/** Moves the times in the fields of the example by the same duration, so that its creation is
 *  `now`. Without the time of its creation, the example stays unchanged. */
function moveTimes(
  example: Json,
  properties: Properties,
  created: string | undefined,
  now: Date,
): Json {
  const ageMs = now.getTime() - Date.parse(String(example[created ?? '']))
  if (Number.isNaN(ageMs)) return example
  const move = ([name, value]: [string, unknown]): [string, unknown] => [
    name,
    typeof value === 'string' && properties[name]?.format === 'date-time'
      ? new Date(Date.parse(value) + ageMs).toISOString()
      : value,
  ]
  return Object.fromEntries(Object.entries(example).map(move))
}

/** JSON Merge Patch (RFC 7396). */
function merge(target: unknown, patch: unknown): unknown {
  if (!isObject(patch) || Array.isArray(patch)) return patch
  const result: Json = isObject(target) && !Array.isArray(target) ? { ...target } : {}
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name]
    else result[name] = merge(result[name], value)
  }
  return result
}
