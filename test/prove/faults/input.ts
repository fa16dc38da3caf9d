/** Faults of a service that takes input that it must refuse, or refuses input that it must take.
 *
 *  The service behind the proxy refuses invalid input. To hide that, the proxy corrects the input
 *  before the service gets it. The fields, parameters and values below are those that the contract
 *  tests send, see values/invalid-values.ts and oracles/invalid-data.ts. */

import { findLargeField } from '../../../scripts/contract/oracles/rules.ts'
import { jsonBytes } from '../../../scripts/contract/values/limit-values.ts'
import type { Contract } from '../../../scripts/model/contract.ts'
import type { Operation } from '../../../scripts/model/operations.ts'
import { mapValues, type Schema } from '../../../scripts/model/schema.ts'
import { readMergePatchType, requestSchema } from '../../../scripts/words/records.ts'
import { readMaxRecordBytes, readRules } from '../../../scripts/words/refusals.ts'
import { asJson, onAnyInput, onAnyQuery, onRequest } from '../hooks.ts'
import { assertFound, faultFactory, firstResource, type SeededFault } from '../seeded-fault.ts'

const faults = faultFactory('validation')

/** The text fields of records have at most 200 characters. */
const TOO_MANY_CHARACTERS = 201

export function validationFaults(contract: Contract): SeededFault[] {
  const { create, update, list } = firstResource(contract)
  return [
    ...faults(create, {
      'ignores an unknown field': onAnyInput(create, ({ not_a_field: _, ...rest }) => rest),
      'takes a number for text': onAnyInput(create, (input) =>
        mapValues(input, (value) => (typeof value === 'number' ? String(value) : value)),
      ),
      'takes empty text': onAnyInput(create, (input) =>
        mapValues(input, (value) => (value === '' ? 'x' : value)),
      ),
      'takes text that is too long': onAnyInput(create, (input) =>
        mapValues(input, (value) =>
          typeof value === 'string' && value.length === TOO_MANY_CHARACTERS
            ? value.slice(1)
            : value,
        ),
      ),
      'takes an unknown option': onAnyInput(create, (input) =>
        mapValues(input, (value) => (value === 'none_of_these' ? undefined : value)),
      ),
      'removes NUL': onAnyInput(create, (input) =>
        mapValues(input, (value) =>
          typeof value === 'string' ? value.replaceAll('\0', '') : value,
        ),
      ),
      'refuses text with emoji': {
        changeResponse: (response, { body }) =>
          body.includes('😀')
            ? asJson(422, response, { message: 'Invalid.', errors: { text: ['is invalid.'] } })
            : {},
      },
      'names no field in a 422': {
        changeResponse: (response) =>
          response.status === 422
            ? { body: JSON.stringify({ message: 'Invalid.', errors: {} }) }
            : {},
      },
      'names a wrong field in a 422': {
        changeResponse: (response) =>
          response.status === 422
            ? { body: JSON.stringify({ message: 'Invalid.', errors: { body: ['is invalid.'] } }) }
            : {},
      },
    }),
    ...faults(list, {
      'ignores an unknown query parameter': onAnyQuery(list, (query) =>
        query.delete('not_a_parameter'),
      ),
      'takes a query parameter that is given twice': onAnyQuery(list, (query) => {
        for (const name of new Set(query.keys())) query.set(name, query.get(name) ?? '')
      }),
      'takes page 0': onAnyQuery(list, (query) => {
        for (const [name, value] of query) if (value === '0') query.set(name, '1')
      }),
    }),
    ...faults(update, {
      'takes null for a field that needs a value': onAnyInput(update, (input) =>
        Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null)),
      ),
    }),
  ]
}

export function sizeFaults(contract: Contract): SeededFault[] {
  const maxBytes = readMaxRecordBytes(contract)
  const createOfLargeRecord = assertFound(
    contract.operations.find(
      (operation) =>
        operation.method === 'post' &&
        findLargeField(requestSchema(contract, operation), maxBytes) !== undefined,
    ),
  )
  return faults(createOfLargeRecord, {
    'takes a record that is too large': onAnyInput(createOfLargeRecord, (input) =>
      jsonBytes(input) > maxBytes ? mapValues(input, shortenText) : input,
    ),
  })
}

function shortenText(value: unknown): unknown {
  return typeof value === 'string' ? value.slice(0, 100) : value
}

/** Faults of rules that schemas cannot express. */
export function ruleFaults(contract: Contract): SeededFault[] {
  const create = assertFound(contract.operations.find((one) => listUnique(one).length > 1))
  const [first = '', second = ''] = listUnique(create)
  const type = assertFound(readMergePatchType(contract))
  const update = assertFound(contract.operations.find((one) => hasMap(contract, one)))
  return [
    ...faults(create, {
      'names another field than the one that is not unique': {
        changeResponse: ({ status, body }) =>
          status === 422 ? { body: body.replace(`{"${first}":["is `, `{"${second}":["is `) } : {},
      },
    }),
    ...faults(update, {
      'replaces a map with a merge patch': onRequest(update, ({ headers }) =>
        headers['content-type'] === type
          ? { headers: { ...headers, 'content-type': 'application/json' } }
          : {},
      ),
    }),
  ]
}

/** The fields of records that are unique. */
function listUnique(operation: Operation): string[] {
  const rules = Object.entries(readRules(operation))
  return rules.filter(([name, { unique }]) => unique && !name.includes('*')).map(([name]) => name)
}

function hasMap(contract: Contract, operation: Operation): boolean {
  const { properties = {} } = requestSchema(contract, operation)
  const isMap = (schema: Schema): boolean => typeof schema.additionalProperties === 'object'
  return operation.method === 'patch' && Object.values(properties).some(isMap)
}
