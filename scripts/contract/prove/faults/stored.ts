/** Faults of what the service stores. */
import type { Contract } from '../../../model/contract.ts'
import { readDefault, type Schema } from '../../../model/schema.ts'
import { readRecordWords, requestSchema } from '../../../words/records.ts'
import { type Forward, json, type ProxyRequest, type ProxyResponse } from '../faulty-proxy.ts'
import {
  firstResource,
  isFor,
  type Json,
  listResources,
  onBody,
  onInput,
  type Resource,
  type SeededFault,
} from '../seeded-fault.ts'
import type { Keys } from './isolation.ts'

export function storedFaults(contract: Contract, { key }: Keys): SeededFault[] {
  const resources = listResources(contract)
  const first = firstResource(contract)
  return [
    ...writeFaults(first),
    ...updateFaults(contract, first),
    ...timeFaults(contract, first),
    ...readFaults(contract, first, key),
    ...valueFaults(contract, resources),
    ...computedFaults(contract, resources),
  ]
}

function newFault(
  what: string,
  operation: SeededFault['operation'],
  by: SeededFault['by'],
): SeededFault {
  return { category: 'stored values', what, operation, by }
}

const mapInput = (input: Json, change: (value: unknown, name: string) => unknown): Json =>
  Object.fromEntries(Object.entries(input).map(([name, value]) => [name, change(value, name)]))

const mapTexts = (input: Json, change: (text: string) => string): Json =>
  mapInput(input, (value) => (typeof value === 'string' ? change(value) : value))

function writeFaults({ create, update }: Resource): SeededFault[] {
  return [
    newFault(
      'cuts text to 100 characters',
      create,
      onInput(create, (input) =>
        mapTexts(input, (text) => (text.includes('@') ? text : [...text].slice(0, 100).join(''))),
      ),
    ),
    newFault(
      'replaces emoji',
      create,
      onInput(create, (input) => mapTexts(input, (text) => text.replaceAll('😀', '?'))),
    ),
    newFault(
      'leaves out an optional list',
      create,
      onInput(create, (input) =>
        mapInput(input, (value) => (Array.isArray(value) && value.length > 0 ? [] : value)),
      ),
    ),
    newFault(
      'keeps the first entry of a list only',
      update,
      onInput(update, (input) =>
        mapInput(input, (value) => (Array.isArray(value) ? value.slice(0, 1) : value)),
      ),
    ),
  ]
}

/** A GET of the record that the request is about. */
function readCurrent(request: ProxyRequest, forward: Forward): Promise<ProxyResponse> {
  const { 'content-type': _, 'if-match': __, ...headers } = request.headers
  return forward({ ...request, method: 'GET', body: '', headers })
}

function updateFaults(contract: Contract, { get, update }: Resource): SeededFault[] {
  const { properties = {} } = requestSchema(contract, update)
  const nullable = Object.keys(properties).filter((name) => properties[name]?.nullable)
  const stale = new Map<string, string>()
  return [
    newFault('answers to an update and stores nothing', update, {
      async instead(request, forward) {
        const known = stale.get(request.path)
        if (isFor(get, request) && known !== undefined)
          return { ...(await forward(request)), body: known }
        if (!isFor(update, request)) return undefined
        const before = await readCurrent(request, forward)
        const response = await forward(request)
        if (response.status === update.success.status) stale.set(request.path, before.body)
        return response
      },
    }),
    newFault('answers with the old record', update, {
      async instead(request, forward) {
        if (!isFor(update, request)) return undefined
        const before = await readCurrent(request, forward)
        const response = await forward(request)
        const isDone = response.status === update.success.status
        return isDone ? { ...response, body: before.body } : response
      },
    }),
    newFault(
      'sets the fields that are not sent to null',
      update,
      onInput(update, (input) =>
        Object.keys(input).some((name) => name in properties)
          ? { ...Object.fromEntries(nullable.map((name) => [name, null])), ...input }
          : input,
      ),
    ),
    newFault(
      'ignores null',
      update,
      onInput(update, (input) =>
        Object.fromEntries(
          Object.entries(input).filter(
            ([name, value]) => value !== null || !nullable.includes(name),
          ),
        ),
      ),
    ),
  ]
}

function timeFaults(contract: Contract, { get, update, create }: Resource): SeededFault[] {
  const { created, updated } = readRecordWords(contract, get)
  if (created === undefined || updated === undefined) return []
  const constant = '2020-02-02T02:02:02.002Z'
  const copyCreation = (record: Json) => ({ ...record, [updated]: record[created] })
  return [
    newFault('does not move the time of the update', update, {
      answer: ({ status, body }, request) =>
        status === 200 && (isFor(update, request) || isFor(get, request))
          ? { body: JSON.stringify(copyCreation(json(body))) }
          : {},
    }),
    newFault(
      'moves the time of the creation',
      update,
      onBody(update, (record) => ({ ...record, [created]: record[updated] })),
    ),
    newFault('stores a constant time of the creation', create, {
      answer: ({ body }) => ({
        body: body.replaceAll(
          new RegExp(`"${created}":"[^"]*"`, 'g'),
          `"${created}":"${constant}"`,
        ),
      }),
    }),
  ]
}

function readFaults(
  contract: Contract,
  { create, get, update, remove }: Resource,
  key: string,
): SeededFault[] {
  const [text = ''] = requestSchema(contract, create).required ?? []
  const first = new Map<string, string>()
  const deleted = new Set<string>()
  const authorization = `Bearer ${key}`
  return [
    newFault('reads an old version', update, {
      answer: ({ status, body }, request) => {
        if (status !== 200 || !isFor(get, request)) return {}
        if (!first.has(request.path)) first.set(request.path, body)
        return { body: first.get(request.path) ?? body }
      },
    }),
    newFault('stores other text than it answers with', create, {
      answer: ({ status, body }, request) =>
        status === 200 && isFor(get, request)
          ? { body: body.replace(`"${text}":"`, `"${text}":"x`) }
          : {},
    }),
    newFault('deletes nothing', remove, {
      async instead(request, forward) {
        if (!isFor(remove, request)) return undefined
        const { status, headers } = await readCurrent(request, forward)
        const { etag: _, 'content-type': __, ...others } = headers
        return status === 200
          ? { status: remove.success.status, headers: others, body: '' }
          : undefined
      },
    }),
    newFault('hides a deleted record and keeps it in the list', remove, {
      async instead(request, forward) {
        if (deleted.has(request.path))
          return await forward({ ...request, path: `${request.path.slice(0, -4)}0000` })
        if (!isFor(remove, request) || request.headers['if-match'] !== undefined) return undefined
        const { status, headers } = await readCurrent(request, forward)
        if (status !== 200 || request.headers.authorization !== authorization) return undefined
        deleted.add(request.path)
        const { etag: _, 'content-type': __, ...others } = headers
        return { status: remove.success.status, headers: others, body: '' }
      },
    }),
  ]
}

interface Field {
  create: Resource['create']
  name: string
  schema: Schema
}

/** The first field of a new record that fits. */
function findField(
  contract: Contract,
  resources: Resource[],
  fits: (schema: Schema, name: string) => boolean,
): Field | undefined {
  for (const { create } of resources)
    for (const [name, schema] of Object.entries(requestSchema(contract, create).properties ?? {}))
      if (fits(schema, name)) return { create, name, schema }
  return undefined
}

/** Faults of defaults, and of values of each type. */
function valueFaults(contract: Contract, resources: Resource[]): SeededFault[] {
  const fault = (
    what: string,
    fits: (schema: Schema, name: string) => boolean,
    change: (input: Json, field: Field) => Json,
  ): SeededFault[] => {
    const field = findField(contract, resources, fits)
    return field
      ? [
          newFault(
            what,
            field.create,
            onInput(field.create, (input) => change(input, field)),
          ),
        ]
      : []
  }
  const ifSent =
    (change: (value: unknown) => unknown) =>
    (input: Json, { name }: Field): Json =>
      input[name] === undefined || input[name] === null
        ? input
        : { ...input, [name]: change(input[name]) }
  const ifAbsent =
    (value: (schema: Schema) => unknown) =>
    (input: Json, { name, schema }: Field): Json =>
      name in input ? input : { ...input, [name]: value(schema) }
  return [
    ...fault(
      'uses another default option',
      (schema) => schema.default !== undefined && (schema.enum?.length ?? 0) > 1,
      ifAbsent(({ enum: options, default: value }) => options?.find((option) => option !== value)),
    ),
    ...fault(
      'uses another default list',
      (schema) => schema.items?.type === 'string' && readDefault(schema) !== undefined,
      ifAbsent(() => ['x']),
    ),
    ...fault(
      'uses another default text',
      (schema) => schema.default === '',
      ifAbsent(() => 'none'),
    ),
    ...fault(
      'loses the offset of a time',
      ({ format }) => format === 'date-time',
      ifSent((value) => String(value).replace(/[+-]\d{2}:\d{2}$/, 'Z')),
    ),
    ...fault(
      'stores the hour of a time only',
      ({ format }) => format === 'date-time',
      ifSent((value) => String(value).replace(/:\d{2}:\d{2}(\.\d+)?/, ':00:00')),
    ),
    ...fault(
      'drops a reference',
      ({ format, nullable }) => format === 'uuid' && nullable === true,
      ifSent(() => null),
    ),
    ...fault(
      'stores numbers with 32 bits',
      ({ type }) => type === 'integer',
      ifSent((value) => (Number(value) > 2 ** 31 ? 2 ** 31 - 1 : value)),
    ),
    ...fault(
      'drops the entries of a map',
      ({ additionalProperties, format }) => typeof additionalProperties === 'object' && !format,
      ifSent((value) => (typeof value === 'object' && !Array.isArray(value) ? {} : value)),
    ),
    ...fault(
      'reverses a list',
      ({ items, uniqueItems }) => items?.type === 'string' && uniqueItems === true,
      ifSent((value) => (Array.isArray(value) ? value.toReversed() : value)),
    ),
  ]
}

/** Faults of fields that the service sets itself. */
function computedFaults(contract: Contract, resources: Resource[]): SeededFault[] {
  return resources.flatMap(({ create, get, update }) => {
    const { set_when = {}, initial = {} } = readRecordWords(contract, get)
    const replace = (name: string, pattern: string, value: string): SeededFault['by'] => ({
      answer: ({ body }) => ({
        body: body.replace(new RegExp(`"${name}":${pattern}`), `"${name}":${value}`),
      }),
    })
    return [
      ...Object.keys(set_when).flatMap((name) => [
        newFault(`never sets ${name}`, update, replace(name, '"[^"]*"', 'null')),
        newFault(
          `sets ${name} always`,
          update,
          replace(name, 'null', '"2026-01-01T00:00:00.000Z"'),
        ),
      ]),
      ...Object.keys(initial).map((name) => {
        const options = requestSchema(contract, update).properties?.[name]?.enum ?? []
        const other = JSON.stringify(options.find((option) => option !== initial[name]))
        return newFault(
          `creates records with another ${name}`,
          create,
          onBody(create, (record) => ({ ...record, [name]: JSON.parse(other) })),
        )
      }),
    ]
  })
}
