/** Faults of a service that takes input that it must refuse, or refuses input that it must take.
 *
 *  The service behind the proxy refuses invalid input. To hide that, the proxy corrects the input
 *  before the service gets it. The fields, parameters and values below are those that the contract
 *  tests send, see values/invalid-values.ts and oracles/invalid-data.ts. */

import { objectLargerThan } from '../../../scripts/contract/values/limit-values.ts'
import type { Contract } from '../../../scripts/model/contract.ts'
import { mapValues } from '../../../scripts/model/schema.ts'
import { requestSchema } from '../../../scripts/words/records.ts'
import { readMaxRecordBytes } from '../../../scripts/words/refusals.ts'
import { asJson, onAnyInput, onAnyQuery, onRequest } from '../hooks.ts'
import { faultFactory, firstResource, type SeededFault } from '../seeded-fault.ts'

const fault = faultFactory('validation')

/** The text fields of records have at most 200 characters. */
const TOO_MANY_CHARACTERS = 201

export function validationFaults(contract: Contract): SeededFault[] {
  const { create, update, list } = firstResource(contract)
  return [
    fault(
      'ignores an unknown field',
      create,
      onAnyInput(create, ({ not_a_field: _, ...rest }) => rest),
    ),
    fault(
      'ignores an unknown query parameter',
      list,
      onAnyQuery(list, (query) => query.delete('not_a_parameter')),
    ),
    fault(
      'takes null for a field that needs a value',
      update,
      onAnyInput(update, (input) =>
        Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null)),
      ),
    ),
    fault(
      'takes a number for text',
      create,
      onAnyInput(create, (input) =>
        mapValues(input, (value) => (typeof value === 'number' ? String(value) : value)),
      ),
    ),
    fault(
      'takes empty text',
      create,
      onAnyInput(create, (input) => mapValues(input, (value) => (value === '' ? 'x' : value))),
    ),
    fault(
      'takes text that is too long',
      create,
      onAnyInput(create, (input) =>
        mapValues(input, (value) =>
          typeof value === 'string' && value.length === TOO_MANY_CHARACTERS
            ? value.slice(1)
            : value,
        ),
      ),
    ),
    fault(
      'takes an unknown option',
      create,
      onAnyInput(create, (input) =>
        mapValues(input, (value) => (value === 'none_of_these' ? undefined : value)),
      ),
    ),
    fault(
      'removes NUL',
      create,
      onAnyInput(create, (input) =>
        mapValues(input, (value) =>
          typeof value === 'string' ? value.replaceAll('\0', '') : value,
        ),
      ),
    ),
    fault('refuses text with emoji', create, {
      changeResponse: (response, { body }) =>
        body.includes('😀')
          ? asJson(422, response, { message: 'Invalid.', errors: { text: ['is invalid.'] } })
          : {},
    }),
    fault('names no field in a 422', create, {
      changeResponse: (response) =>
        response.status === 422
          ? { body: JSON.stringify({ message: 'Invalid.', errors: {} }) }
          : {},
    }),
    fault('names a wrong field in a 422', create, {
      changeResponse: (response) =>
        response.status === 422
          ? { body: JSON.stringify({ message: 'Invalid.', errors: { body: ['is invalid.'] } }) }
          : {},
    }),
    fault(
      'takes a query parameter that is given twice',
      list,
      onAnyQuery(list, (query) => {
        for (const name of new Set(query.keys())) query.set(name, query.get(name) ?? '')
      }),
    ),
    fault(
      'takes page 0',
      list,
      onAnyQuery(list, (query) => {
        for (const [name, value] of query) if (value === '0') query.set(name, '1')
      }),
    ),
  ]
}

export function sizeFaults(contract: Contract): SeededFault[] {
  const maxBytes = readMaxRecordBytes(contract)
  const createOfLargeRecord = contract.operations.find(
    (operation) =>
      operation.method === 'post' &&
      objectLargerThan(maxBytes, requestSchema(contract, operation)) !== undefined,
  )
  if (!createOfLargeRecord) return []
  return [
    fault(
      'takes a record that is too large',
      createOfLargeRecord,
      onRequest(createOfLargeRecord, ({ body }) =>
        Buffer.byteLength(body) > maxBytes ? { body: withShortText(body) } : {},
      ),
    ),
  ]
}

function withShortText(body: string): string {
  return JSON.stringify(JSON.parse(body), (_, value) =>
    typeof value === 'string' ? value.slice(0, 100) : value,
  )
}
