/** Seeded faults: the service stores or returns something else than it must. */
import type { Contract } from '../../../scripts/model/contract.ts'
import type { JsonObject } from '../../../scripts/model/json.ts'
import { mapValues, readDefault, type Schema } from '../../../scripts/model/schema.ts'
import { readRecordWords, requestSchema } from '../../../scripts/words/records.ts'
import { type ProxyHooks, parseObject } from '../faulty-proxy.ts'
import { isFor, onBody, onInput, readRecord, withOtherId, withoutHeaders } from '../hooks.ts'
import {
  assertFound,
  faultFactory,
  firstResource,
  type Keys,
  listResources,
  type Resource,
  type SeededFault,
} from '../seeded-fault.ts'

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

const faults = faultFactory('stored values')

const mapTexts = (input: JsonObject, change: (text: string) => string): JsonObject =>
  mapValues(input, (value) => (typeof value === 'string' ? change(value) : value))

function writeFaults({ create, update }: Resource): SeededFault[] {
  return [
    ...faults(create, {
      'cuts text to 100 characters': onInput(create, (input) =>
        // The service would refuse an email without its end.
        mapTexts(input, (text) => (text.includes('@') ? text : [...text].slice(0, 100).join(''))),
      ),
      'replaces emoji': onInput(create, (input) =>
        mapTexts(input, (text) => text.replaceAll('😀', '?')),
      ),
      'stores lists as empty': onInput(create, (input) =>
        mapValues(input, (value) => (Array.isArray(value) && value.length > 0 ? [] : value)),
      ),
    }),
    ...faults(update, {
      'keeps the first entry of a list only': onInput(update, (input) =>
        mapValues(input, (value) => (Array.isArray(value) ? value.slice(0, 1) : value)),
      ),
    }),
  ]
}

function updateFaults(contract: Contract, { get, update }: Resource): SeededFault[] {
  const { properties = {} } = requestSchema(contract, update)
  const nullable = Object.keys(properties).filter((name) => properties[name]?.nullable)
  const bodiesBefore = new Map<string, string>()
  return faults(update, {
    'responds to an update and stores nothing': {
      async respond(request, forward) {
        const oldBody = bodiesBefore.get(request.path)
        if (isFor(get, request) && oldBody !== undefined)
          return { ...(await forward(request)), body: oldBody }
        if (!isFor(update, request)) return undefined
        const before = await readRecord(request, forward)
        const response = await forward(request)
        if (response.status === update.success.status) bodiesBefore.set(request.path, before.body)
        return response
      },
    },
    'returns the old record': {
      async respond(request, forward) {
        if (!isFor(update, request)) return undefined
        const before = await readRecord(request, forward)
        const response = await forward(request)
        const isDone = response.status === update.success.status
        return isDone ? { ...response, body: before.body } : response
      },
    },
    'sets to null the fields that an update leaves out': onInput(update, (input) =>
      // The update `{}` stays as it is.
      Object.keys(input).some((name) => name in properties)
        ? { ...Object.fromEntries(nullable.map((name) => [name, null])), ...input }
        : input,
    ),
    'ignores null': onInput(update, (input) =>
      Object.fromEntries(
        Object.entries(input).filter(([name, value]) => value !== null || !nullable.includes(name)),
      ),
    ),
  })
}

function timeFaults(contract: Contract, { get, update, create }: Resource): SeededFault[] {
  const words = readRecordWords(contract, get)
  const [created, updated] = [assertFound(words.created), assertFound(words.updated)]
  const constant = '2020-02-02T02:02:02.002Z'
  const copyCreation = (record: JsonObject) => ({ ...record, [updated]: record[created] })
  return [
    ...faults(update, {
      'does not move the time of the update': {
        changeResponse: ({ status, body }, request) =>
          status === 200 && (isFor(update, request) || isFor(get, request))
            ? { body: JSON.stringify(copyCreation(parseObject(body))) }
            : {},
      },
      'moves the time of the creation': onBody(update, (record) => ({
        ...record,
        [created]: record[updated],
      })),
    }),
    ...faults(create, {
      'stores a constant time of the creation': {
        changeResponse: ({ body }) => ({
          body: body.replaceAll(
            new RegExp(`"${created}":"[^"]*"`, 'g'),
            `"${created}":"${constant}"`,
          ),
        }),
      },
    }),
  ]
}

function readFaults(
  contract: Contract,
  { create, get, update, remove }: Resource,
  key: string,
): SeededFault[] {
  const [firstField = ''] = requestSchema(contract, create).required ?? []
  const firstBodies = new Map<string, string>()
  const deleted = new Set<string>()
  const authorization = `Bearer ${key}`
  return [
    ...faults(update, {
      'reads an old version': {
        changeResponse: ({ status, body }, request) => {
          if (status !== 200 || !isFor(get, request)) return {}
          if (!firstBodies.has(request.path)) firstBodies.set(request.path, body)
          return { body: firstBodies.get(request.path) ?? body }
        },
      },
    }),
    ...faults(create, {
      'stores other text than it returns': {
        changeResponse: ({ status, body }, request) =>
          status === 200 && isFor(get, request)
            ? { body: body.replace(`"${firstField}":"`, `"${firstField}":"x`) }
            : {},
      },
    }),
    ...faults(remove, {
      'deletes nothing': {
        async respond(request, forward) {
          if (!isFor(remove, request)) return undefined
          const { status, headers } = await readRecord(request, forward)
          const others = withoutHeaders(headers, 'etag', 'content-type')
          return status === 200
            ? { status: remove.success.status, headers: others, body: '' }
            : undefined
        },
      },
      'hides a deleted record and keeps it in the list': {
        async respond(request, forward) {
          if (deleted.has(request.path))
            return await forward({ ...request, path: withOtherId(request.path) })
          // A deletion with If-Match goes to the service, which can refuse it.
          if (!isFor(remove, request) || request.headers['if-match'] !== undefined) return undefined
          const { status, headers } = await readRecord(request, forward)
          if (status !== 200 || request.headers.authorization !== authorization) return undefined
          deleted.add(request.path)
          const others = withoutHeaders(headers, 'etag', 'content-type')
          return { status: remove.success.status, headers: others, body: '' }
        },
      },
    }),
  ]
}

interface Field {
  create: Resource['create']
  name: string
  schema: Schema
}

/** The fields of all create requests. */
function listFields(contract: Contract, resources: Resource[]): Field[] {
  return resources.flatMap(({ create }) => {
    const { properties = {} } = requestSchema(contract, create)
    return Object.entries(properties).map(([name, schema]) => ({ create, name, schema }))
  })
}

function valueFaults(contract: Contract, resources: Resource[]): SeededFault[] {
  const fields = listFields(contract, resources)
  /** A fault of the first field that fits. Keeps the value of the field if `change` returns
   *  undefined. */
  const faultIn = (
    fits: (schema: Schema) => boolean,
    what: string,
    change: (value: unknown, schema: Schema) => unknown,
  ): SeededFault[] => {
    const { create, name, schema } = assertFound(fields.find((field) => fits(field.schema)))
    const hooks = onInput(create, (input) => {
      const value = change(input[name], schema)
      return value === undefined ? input : { ...input, [name]: value }
    })
    return faults(create, { [what]: hooks })
  }
  const ifSent = (change: (value: unknown) => unknown) => (value: unknown) =>
    value === undefined || value === null ? undefined : change(value)
  const ifAbsent = (defaultOf: (schema: Schema) => unknown) => (value: unknown, schema: Schema) =>
    value === undefined ? defaultOf(schema) : undefined
  return [
    ...faultIn(
      (schema) => schema.default !== undefined && (schema.enum?.length ?? 0) > 1,
      'uses another default option',
      ifAbsent(({ enum: options, default: value }) => options?.find((option) => option !== value)),
    ),
    ...faultIn(
      (schema) => schema.items?.type === 'string' && readDefault(schema) !== undefined,
      'uses another default list',
      ifAbsent(() => ['x']),
    ),
    ...faultIn(
      (schema) => schema.default === '',
      'uses another default text',
      ifAbsent(() => 'none'),
    ),
    ...faultIn(
      ({ format }) => format === 'date-time',
      'loses the offset of a time',
      ifSent((value) => String(value).replace(/[+-]\d{2}:\d{2}$/, 'Z')),
    ),
    ...faultIn(
      ({ format }) => format === 'date-time',
      'stores the hour of a time only',
      ifSent((value) => String(value).replace(/:\d{2}:\d{2}(\.\d+)?/, ':00:00')),
    ),
    ...faultIn(
      ({ format, nullable }) => format === 'uuid' && nullable === true,
      'drops a reference',
      ifSent(() => null),
    ),
    ...faultIn(
      ({ type }) => type === 'integer',
      'stores numbers with 32 bits',
      ifSent((value) => (Number(value) > 2 ** 31 - 1 ? 2 ** 31 - 1 : value)),
    ),
    ...faultIn(
      ({ additionalProperties, format }) => typeof additionalProperties === 'object' && !format,
      'drops the entries of a map',
      ifSent((value) => (typeof value === 'object' && !Array.isArray(value) ? {} : value)),
    ),
    ...faultIn(
      ({ items, uniqueItems }) => items?.type === 'string' && uniqueItems === true,
      'reverses a list',
      ifSent((value) => (Array.isArray(value) ? value.toReversed() : value)),
    ),
  ]
}

/** Faults of fields that the service sets itself. */
function computedFaults(contract: Contract, resources: Resource[]): SeededFault[] {
  return resources.flatMap(({ create, get, update }) => {
    const { set_when = {}, initial = {}, computed = {} } = readRecordWords(contract, get)
    const replace = (name: string, pattern: string, value: string): ProxyHooks => ({
      changeResponse: ({ body }) => ({
        body: body.replace(new RegExp(`"${name}":${pattern}`), `"${name}":${value}`),
      }),
    })
    return [
      ...Object.keys(set_when).flatMap((name) =>
        faults(update, {
          [`never sets ${name}`]: replace(name, '"[^"]*"', 'null'),
          [`sets ${name} always`]: replace(name, 'null', '"2026-01-01T00:00:00.000Z"'),
        }),
      ),
      ...Object.keys(computed).flatMap((name) =>
        faults(create, { [`never computes ${name}`]: replace(name, '"[^"]*"', 'null') }),
      ),
      ...Object.keys(initial).flatMap((name) => {
        const options = requestSchema(contract, update).properties?.[name]?.enum ?? []
        const others = options.filter((option) => option !== initial[name])
        return others.slice(0, 1).flatMap((other) =>
          faults(create, {
            [`creates records with another ${name}`]: onBody(create, (record) => ({
              ...record,
              [name]: other,
            })),
          }),
        )
      }),
    ]
  })
}
