/** The oracles of `muster contract`: what each checks, and for which operations. */
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { readBatchWords } from '../words/batches.ts'
import { readExportFileWords } from '../words/export-files.ts'
import { findIdempotencyKey } from '../words/idempotency.ts'
import { readImportWords } from '../words/imports.ts'
import { readRules } from '../words/refusals.ts'
import { FIELD, prefixed, RESTRICTIONS, type Tester } from './coverage/testers.ts'
import { hasWebhooks } from './deliveries/webhook-account.ts'
import { keyChecks } from './oracles/access.ts'
import { attemptChecks } from './oracles/attempts.ts'
import { batchChecks } from './oracles/batches.ts'
import { bodyChecks } from './oracles/bodies.ts'
import { cascadeChecks } from './oracles/cascades.ts'
import { computedChecks } from './oracles/computed.ts'
import { conditionChecks } from './oracles/conditions.ts'
import { deletionChecks } from './oracles/deletions.ts'
import { deliveryChecks } from './oracles/deliveries.ts'
import { eventChecks } from './oracles/events.ts'
import { exportFileChecks } from './oracles/export-files.ts'
import { fieldChecks } from './oracles/fields.ts'
import { headChecks } from './oracles/head.ts'
import { headerChecks } from './oracles/headers.ts'
import { idempotencyChecks } from './oracles/idempotency.ts'
import { importChecks } from './oracles/imports.ts'
import { includeChecks } from './oracles/includes.ts'
import { invalidValueChecks, randomInvalidChecks } from './oracles/invalid-data.ts'
import { isolationChecks } from './oracles/isolation.ts'
import { listContentChecks } from './oracles/lists.ts'
import { referenceChecks } from './oracles/references.ts'
import { ruleChecks } from './oracles/rules.ts'
import { sequenceChecks } from './oracles/sequences.ts'
import { stateChecks } from './oracles/states.ts'
import { updateChecks } from './oracles/updates.ts'
import { urlChecks } from './oracles/urls.ts'
import { limitChecks, randomValidChecks } from './oracles/valid-data.ts'
import { webhookChecks } from './oracles/webhooks.ts'
import { type Checks, hasParameter, type Run, type Target } from './run.ts'

export interface Oracle extends Tester {
  /** A sentence for the help. */
  promise: string
  /** By default, for every operation. */
  isFor?(operation: Operation, target: Target, contract: Contract): boolean
  /** It mostly waits, so it runs beside the other oracles if it can. */
  waits?: boolean
  /** The option without which the oracle has nothing to check. Completes "it needs …". */
  needs?: string
  listChecks(run: Run, operation: Operation): Checks
}

const EXPORT_FILE_CLAIMS = [
  ...['bytes', 'csv', 'escaped', 'filter_parameter', 'filters', 'format', 'lists', 'resource'],
  ...['rows', 'sha256', 'columns', 'workbook'],
].map((key) => `x-export-file.${key}`)

const isRead = ({ method }: Operation): boolean => method === 'get'

export const ORACLES: readonly Oracle[] = [
  {
    name: 'accepts valid data at the limits',
    promise:
      'Valid data at each limit is accepted. The response and a GET have what was sent, and defaults for the rest.',
    tests: [
      ...prefixed('body', 'default', 'nullable', 'optional'),
      'header location',
      ...['created', 'initial', 'set_when', 'updated'].map((key) => `x-record.${key}`),
    ],
    listChecks: limitChecks,
  },
  {
    name: 'accepts random valid data',
    promise: 'The same for random valid data.',
    listChecks: randomValidChecks,
  },
  {
    name: 'refuses each invalid value',
    promise: 'Data with one fault gets 400 or 422.',
    tests: [
      'x-names-fields',
      ...prefixed('body', 'required', ...RESTRICTIONS),
      ...prefixed('parameter', ...RESTRICTIONS),
    ],
    listChecks: invalidValueChecks,
  },
  {
    name: 'refuses random invalid data',
    promise: 'The same for one fault in random valid data.',
    listChecks: randomInvalidChecks,
  },
  {
    name: 'requires an API key with the permission',
    promise:
      'Without a valid key: 401. Without the permission: 403, and nothing changes. A Read Only key can read. ' +
      'With --finance-none-key and --finance-read-key, other users can do what their permissions allow, and get ' +
      'the same records. The case of the authentication scheme has no meaning.',
    tests: ['x-permission', 'x-forbidden-with', 'header www-authenticate'],
    listChecks: keyChecks,
  },
  {
    name: 'refuses other URLs and methods',
    promise:
      'Unknown IDs and paths get 404, broken URLs 400 or 414, and other methods 405 with Allow. The longest URL ' +
      'is accepted, a parameter without = is empty, and lists of values are accepted in all their spellings.',
    tests: ['x-list-parameters', 'x-unmatched-requests'],
    listChecks: urlChecks,
  },
  {
    name: 'sends headers that mean what the contract says',
    promise:
      'Rate limit headers count the requests of a user with all of their keys, and name the end of the window. ' +
      'X-Request-Id repeats that of the client.',
    tests: ['x-echoes', 'x-counts-down', 'x-counts-from', 'x-scope'],
    listChecks: headerChecks,
  },
  {
    name: 'answers HEAD as GET',
    promise:
      'HEAD has the status and the headers of GET, and no body. Also for errors and for 304.',
    isFor: isRead,
    listChecks: headChecks,
  },
  {
    name: 'accepts only a JSON body',
    promise:
      'Malformed, missing, oversized and mislabelled bodies get 400, 413 or 415. The largest body is accepted.',
    isFor: ({ body }) => body !== null,
    listChecks: bodyChecks,
  },
  {
    name: 'compares versions',
    promise: 'If-Match and If-None-Match take one tag, a list, a weak tag and *.',
    tests: ['header etag'],
    // RFC 9110 §13.1 fixes these names, so no contract can choose others.
    isFor: (operation) => hasParameter(operation, 'If-None-Match', 'If-Match'),
    listChecks: conditionChecks,
  },
  {
    name: 'does not repeat a request with the same idempotency key',
    promise:
      'A repeated or simultaneous request has one effect. A refused request leaves its key free. Another ' +
      'operation refuses the key.',
    tests: ['x-idempotency-key', 'header idempotent-replayed', 'x-shown-once'],
    isFor: (operation) => findIdempotencyKey(operation) !== undefined,
    listChecks: idempotencyChecks,
  },
  {
    name: 'lists the right records',
    promise:
      'Every filter, sort and page returns the right records, and meta the right counts, compared with the whole ' +
      'list. A walk by cursor returns the same. Also after updates and deletes, with values that must not match, and with more records than a page.',
    tests: [
      ...['header link', 'parameter default', 'parameter nullable', 'sort', 'x-filter'],
      ...['complete_until', 'items', 'meta', 'page', 'sort'].map((key) => `x-lists.${key}`),
      'x-returned-by',
    ],
    isFor: isRead,
    listChecks: listContentChecks,
  },
  {
    name: 'embeds what include names',
    promise:
      'Each record of a list, and a single one, has the embedded records and counts that other requests return, and ' +
      'nothing else is different.',
    tests: ['x-lists.include', 'x-record.include'],
    isFor: isRead,
    listChecks: includeChecks,
  },
  {
    name: 'returns the selected fields',
    promise: 'With fields, records have the named fields only, with the same values and ETag.',
    tests: ['x-lists.fields'],
    isFor: isRead,
    listChecks: fieldChecks,
  },
  {
    name: 'exports the records of the list',
    promise:
      'The file of an export has the records of the list with the same filters, in the declared format.',
    tests: [
      'body optional',
      'header content-disposition',
      'header repr-digest',
      'x-record.finished_when',
      'x-record.set_when',
      ...EXPORT_FILE_CLAIMS,
    ],
    isFor: (operation) => readExportFileWords(operation) !== undefined,
    listChecks: exportFileChecks,
  },
  {
    name: 'updates only what was sent',
    promise:
      'An update changes the fields that were sent, null clears, and the time of the update becomes later. ' +
      'A merge patch changes single entries of maps.',
    tests: ['body nullable', 'x-merge-patch', 'x-record.updated', 'header etag'],
    isFor: ({ method }) => method === 'patch',
    listChecks: updateChecks,
  },
  {
    name: 'refuses what its rules refuse',
    promise:
      'Unique values are unique, also after updates and deletions. Rules ' +
      'refuse what they name, and nothing else. The largest record is accepted. The errors name the field.',
    tests: ['x-max-record-bytes', 'x-record.unique', 'x-refusals'],
    isFor: (operation) => operation.body !== null || hasRules(operation),
    listChecks: ruleChecks,
  },
  {
    name: 'computes what the contract says',
    promise:
      'Computed fields have the values of their table, also in the event. Later updates do not change them.',
    tests: ['x-record.computed'],
    isFor: ({ method }) => method === 'post',
    listChecks: computedChecks,
  },
  {
    name: 'changes states as declared',
    promise:
      'Each change of state that the contract allows is accepted, and each other one refused. Fixed fields stay.',
    tests: ['x-record.fixed_when', 'x-record.states', 'x-refusals'],
    isFor: ({ method }) => method === 'patch',
    listChecks: stateChecks,
  },
  {
    name: 'deletes the record',
    promise: 'A deleted record is gone for every operation, and from the list.',
    isFor: ({ method }) => method === 'delete',
    listChecks: deletionChecks,
  },
  {
    name: 'clears or keeps references to a deleted record',
    promise:
      'A deletion is refused while a record needs the deleted one. Otherwise all references to it become null, ' +
      'and no other record changes.',
    tests: ['x-when-deleted'],
    isFor: ({ method }) => method === 'delete',
    listChecks: cascadeChecks,
  },
  {
    name: 'emits exactly the declared events',
    promise:
      'A change emits each declared event once, about the right record, with its data. A request that is refused, ' +
      'repeated or changes nothing emits none.',
    tests: ['x-emits', 'x-emits-when', 'x-event-list'],
    isFor: isSingleEmitter,
    listChecks: eventChecks,
  },
  {
    name: 'keeps its rules in every order of requests',
    promise:
      'Random sequences of creates, updates and deletes, also simultaneous ones, leave the records that a model ' +
      'computes. States, fixed fields, references and versions are as the contract says.',
    isFor: ({ method }) => method === 'patch',
    listChecks: sequenceChecks,
  },
  {
    name: 'delivers its events',
    promise:
      'A webhook gets each event once, with the headers, signatures and body of asyncapi.yaml.',
    tests: [
      ...prefixed('event', ...FIELD),
      ...prefixed('delivery', ...FIELD),
      'x-emitted-by-system',
      'x-equals',
      'x-signature',
      'x-time-of',
      'x-trace-of',
    ],
    isFor: (operation, { connect }, contract) =>
      isSingleEmitter(operation) && connect !== undefined && hasWebhooks(contract),
    needs: 'the option --receiver-url',
    listChecks: deliveryChecks,
  },
  {
    name: 'attempts deliveries until they are accepted',
    promise:
      'Only a 2xx status within the time-out ends the attempts. Until then, the same bytes come again on the ' +
      'schedule of asyncapi.yaml.',
    tests: ['x-retry-seconds', 'x-timeout-seconds'],
    isFor: (operation, { connect }, contract) =>
      connect !== undefined && hasWebhooks(contract) && isFirstEmitter(operation, contract),
    waits: true,
    needs: 'the option --receiver-url',
    listChecks: attemptChecks,
  },
  {
    name: 'delivers to each webhook what it must get',
    promise:
      'A webhook gets the events of its types from its creation on, and none while it is disabled. All attempts of ' +
      'the schedule, retries, resends, a rotated secret and the order of events are tested.',
    tests: ['header etag'],
    isFor: (operation, { newAccount }, contract) =>
      newAccount !== undefined && hasWebhooks(contract) && isFirstEmitter(operation, contract),
    waits: true,
    needs: 'no option --url',
    listChecks: webhookChecks,
  },
  {
    name: 'refuses wrong references',
    promise:
      'No record can refer to a deleted record, to one of another account, or to one without the values that ' +
      'it needs. Each reference is tried alone.',
    tests: ['x-refers-to', 'x-refers-with'],
    isFor: ({ body }) => body !== null,
    listChecks: referenceChecks,
  },
  {
    name: 'does in a batch what single requests do',
    promise:
      'The items of a batch have the results and the events of single requests. An atomic batch with a refused ' +
      'item changes nothing.',
    tests: ['body optional', 'x-batch', 'x-emits', 'x-refusals'],
    isFor: (operation) => readBatchWords(operation) !== undefined,
    listChecks: batchChecks,
  },
  {
    name: 'imports rows as single requests',
    promise:
      'A trial of an import accepts and refuses each row as a single request, with errors of the same fields. A ' +
      'file that cannot be read fails.',
    tests: [
      'header content-disposition',
      'parameter default',
      'x-import',
      'x-record.finished_when',
      'x-record.set_when',
    ],
    isFor: (operation) => readImportWords(operation) !== undefined,
    listChecks: importChecks,
  },
  {
    name: 'keeps accounts apart',
    promise:
      "With --other-key: the other account gets 404 for the run's records, and no list, filter or count has them.",
    tests: ['x-scope'],
    isFor: (_, { otherKey }) => otherKey !== undefined,
    needs: 'the option --other-key',
    listChecks: isolationChecks,
  },
]

function hasRules(operation: Operation): boolean {
  return Object.keys(readRules(operation)).length > 0
}

/** Emits events about one record. */
function isSingleEmitter(operation: Operation): boolean {
  return operation.emits.length > 0 && readBatchWords(operation) === undefined
}

/** All operations share one schedule of attempts, so one operation is enough. */
function isFirstEmitter(operation: Operation, { operations }: Contract): boolean {
  return operations.find(({ emits }) => emits.length > 0) === operation
}

export function listOracles(contract: Contract, operation: Operation, target: Target): Oracle[] {
  return ORACLES.filter(({ isFor }) => isFor?.(operation, target, contract) ?? true)
}

/** An oracle that had nothing to check, because an option is missing. */
export interface UnusedOracle {
  name: string
  needs: string
}

export function listUnused(cases: readonly { name: string }[]): UnusedOracle[] {
  return ORACLES.flatMap(({ name, needs }) =>
    needs === undefined || cases.some((one) => one.name === name) ? [] : [{ name, needs }],
  )
}
