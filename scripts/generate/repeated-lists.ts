/** The lists that the contracts repeat: `generate` writes those of event types from the messages of
 *  asyncapi.yaml and from the `event_type` of each alternative of the schema Event, and those of the
 *  parameter `fields` from the schemas of records. */
import { isDeepStrictEqual } from 'node:util'
import { isMap, type Node, parseDocument, type Scalar, stringify } from 'yaml'
import { buildContract, type Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { dereference } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import { fail, type Located, type Path, type Source, valueAt } from '../model/source.ts'
import { parseYaml } from '../model/yaml.ts'
import { findItemSchema, readListWords } from '../words/lists.ts'
import { wordsOfRecord } from '../words/records.ts'

const SCHEMAS = ['components', 'schemas']

/** The `event_type` of each alternative of the schema Event, and the reference to the alternative.
 *  Empty if the contract has no such schema. */
export function listEventAlternatives({ sources, openapi }: Contract) {
  const path = [...SCHEMAS, 'Event', 'oneOf']
  const alternatives = (valueAt(openapi.root, path) ?? []) as Schema[]
  return alternatives.map((value) => {
    const target = dereference(sources, { source: openapi, path, value })
    const type = target.value.properties?.event_type ?? {}
    return { ref: value.$ref, schema: dereference(sources, { ...target, value: type }) }
  })
}

/** The lists that differ from what `generate` writes, with the value that it writes. */
export function findStaleLists(contract: Contract): Located[] {
  const { openapi, asyncapi, events } = contract
  const subscribable = events.filter(({ isSubscribable }) => isSubscribable)
  const summaries = new Map(events.map(({ type, summary }) => [type, summary]))
  const describe = (types: readonly unknown[]) =>
    types.map((type) => summaries.get(String(type)) ?? '')
  const alternatives = listEventAlternatives(contract)
  const mapping = alternatives.flatMap(({ ref, schema }) =>
    (schema.value.enum ?? []).map((type) => [type, ref]),
  )
  const names = subscribable.map(({ type }) => type)
  const operational = events.filter(({ isOperational }) => isOperational).map(({ type }) => type)
  const star = operational.length > 0 ? 'All types, without operational ones.' : 'All types.'
  const all = events.map(({ type }) => type)
  const [channel, ...otherChannels] = Object.keys(valueAt(asyncapi.root, ['channels']) ?? {})
  const messages = events.map(({ place }) => {
    const name = String(place.path.at(-1))
    return [name, { $ref: `#/components/messages/${name}` }]
  })
  const list = (source: Source, path: Path, value: unknown): Located => ({ source, path, value })
  return [
    ...(
      [
        ['EventTypeName', names, describe(names)],
        [
          'WebhookEventType',
          ['*', ...names, ...operational],
          [star, ...describe([...names, ...operational])],
        ],
        ['DeliveredEventType', all, describe(all)],
      ] as const
    ).flatMap(([schema, types, descriptions]) => [
      list(openapi, [...SCHEMAS, schema, 'enum'], types),
      list(openapi, [...SCHEMAS, schema, 'x-enum-descriptions'], descriptions),
    ]),
    list(openapi, [...SCHEMAS, 'Event', 'discriminator', 'mapping'], Object.fromEntries(mapping)),
    ...alternatives.map(({ schema: { source, path, value } }) =>
      list(source, [...path, 'x-enum-descriptions'], describe(value.enum ?? [])),
    ),
    ...contract.operations.flatMap((operation) => listRecordFields(contract, operation)),
    ...(channel !== undefined && otherChannels.length === 0
      ? [list(asyncapi, ['channels', channel, 'messages'], Object.fromEntries(messages))]
      : []),
  ].filter(({ source, path, value }) => {
    const hasOwner = valueAt(source.root, path.slice(0, -1)) !== undefined
    return hasOwner && !isDeepStrictEqual(valueAt(source.root, path), value)
  })
}

/** What the parameter `fields` of an operation that returns one record can name: each field of the record
 *  that `include` does not add. The fields of several types have no common description: people write it. */
function listRecordFields(contract: Contract, operation: Operation): Located[] {
  const { sources } = contract
  const { fields } = readListWords(contract) ?? {}
  const parameter = operation.parameters.find(({ name }) => name === fields?.parameter)
  const media = operation.success.content['application/json']
  if (parameter === undefined || media === undefined) return []
  if (findItemSchema(contract, operation) !== undefined) return []
  const { items = {} } = parameter.schema.value
  const { source, path } = dereference(sources, { ...parameter.schema, value: items })
  const record = dereference(sources, media.schema)
  const types = record.value.oneOf?.map((value) => dereference(sources, { ...record, value }))
  const own = (types ?? [record]).flatMap((type) =>
    Object.entries(type.value.properties ?? {})
      .filter(([name]) => !(name in (wordsOfRecord(type.value).include ?? {})))
      .map(([name, value]) => [name, dereference(sources, { ...type, value }).value.description]),
  )
  const names = { source, path: [...path, 'enum'], value: [...new Set(own.map(([name]) => name))] }
  if (types !== undefined) return [names]
  return [
    names,
    { source, path: [...path, 'x-enum-descriptions'], value: own.map(([, text = '']) => text) },
  ]
}

/** The contract with all of these lists, in its texts, too. */
export function withRepeatedLists(contract: Contract): Contract {
  const lists = findStaleLists(contract)
  if (lists.length === 0) return contract
  const edit = (source: Source): Source => {
    const own = lists.filter((list) => list.source === source)
    return parseYaml(source.file, own.reduce(replaceList, source.text))
  }
  return buildContract(edit(contract.openapi), edit(contract.asyncapi))
}

/** The text of the file with the list. The rest stays as it is, with its comments. */
function replaceList(text: string, { source, path, value }: Located): string {
  const owner = parseDocument(text).getIn(path.slice(0, -1))
  const key = String(path.at(-1))
  if (!isMap<Scalar, Node>(owner) || owner.flow)
    fail(source, path, `what contains ${key} is in braces: write it without them`)
  const listed = owner.items.find((item) => item.key.value === key)
  const last = listed ?? owner.items.at(-1)
  const end = text.slice(0, last?.value?.range?.[1]).trimEnd().length
  const start = listed?.key.range?.[0] ?? end
  const first = owner.range?.[0] ?? 0
  const lineBreak = `\n${' '.repeat(first - text.lastIndexOf('\n', first) - 1)}`
  const lines = stringify({ [key]: value }, { lineWidth: 0, singleQuote: true }).trimEnd()
  const block = (listed ? '' : '\n') + lines
  return text.slice(0, start) + block.replaceAll('\n', lineBreak) + text.slice(end)
}
