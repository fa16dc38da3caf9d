/** The promises of a contract: what it says about each operation, event and record. oracles.ts says
 *  which oracle tests which promises, and the coverage counts the tests of each. */
import { WORD_RULES } from '../diff/words.ts'
import type { Contract } from '../model/contract.ts'
import type { Operation, Parameter } from '../model/operations.ts'
import { dereference } from '../model/references.ts'
import { ANNOTATIONS, listSubschemas, readDefault, type Schema } from '../model/schema.ts'
import { isObject, type Located, type Place, valueAt } from '../model/source.ts'
import { readListWords } from '../words/lists.ts'
import { readWord } from '../words/read.ts'

export interface ContractPromise {
  /** An operation, a type of event, a component of the contract, or a file. */
  subject: string
  kind: 'status' | 'event' | 'field' | 'header' | 'request' | 'list' | 'rule'
  /** For example `404`, `title`, `data.*.id` or `filter[status]`. Empty: the whole subject. */
  name: string
  /** Selects the oracles that test the promise: `body maxLength`, `header etag` or `x-filter`. */
  claim: string
  place: Place
  /** Why no test is possible: `x-untested` at the place. */
  reason: string | null
  /** What tests name: the subject and name of the promise, and for a component also each operation or
   *  event with the component. */
  uses: Use[]
}

interface Use {
  subject: string
  name: string
}

/** Identifies a promise in a run. */
export function keyOf(subject: string, claim: string, name: string): string {
  return `${subject} ${claim} ${name}`
}

interface Entry extends Omit<ContractPromise, 'reason' | 'uses'> {
  /** The reference that leads to the place. */
  reference?: Place
  operation?: Operation
}
/** `use` is a further use of the promise. */
type Add = (entry: Entry, use?: Use) => void

/** Words without a rule in scripts/diff/words.ts that say what the service does. */
const FURTHER_WORDS = [
  ...['x-deprecated-since', 'x-emitted-by-system', 'x-permission', 'x-rate-limit', 'x-signature'],
  ...['x-sunset', 'x-unmatched-requests'],
]
/** Tells programs how to show an amount. */
const NO_PROMISE = 'x-currency'
const WORDS = [...Object.keys(WORD_RULES), ...FURTHER_WORDS].filter(
  (word) => !word.includes('.') && word !== NO_PROMISE,
)
/** Each key below these words is a claim, for example `x-record.states`. */
const WORDS_OF_CLAIMS = ['x-export-file', 'x-lists', 'x-record']
/** Each key or entry of these words is the name of a promise. */
const WORDS_OF_NAMES = [
  ...['x-emits-when', 'x-emitted-by-system', 'x-refusals', 'x-unmatched-requests'],
  ...[
    'x-response-headers',
    'x-record.computed',
    'x-record.fixed_when',
    'x-record.initial',
    'x-record.set_when',
  ],
  'x-record.states',
]

/** Every promise once, in the order of the contract. */
export function listPromises(contract: Contract): ContractPromise[] {
  const promises = new Map<string, ContractPromise>()
  const add: Add = (entry, use) => {
    const { subject, claim, name } = entry
    const key = keyOf(subject, claim, name)
    const reason = readReason(entry)
    const promise = promises.get(key) ?? { ...entry, reason, uses: [{ subject, name }] }
    promises.set(key, promise)
    if (use !== undefined) promise.uses.push(use)
  }
  const { openapi, asyncapi, operations, events } = contract
  for (const operation of operations)
    addOperation(contract, operation, (entry, use) => add({ ...entry, operation }, use))
  for (const { type: subject, payload, headers } of events) {
    addFields(contract, payload, { subject, kind: 'field', part: 'event', add })
    addFields(contract, headers, { subject, kind: 'header', part: 'delivery', add })
  }
  const senders = Object.keys(valueAt(asyncapi.root, ['operations']) ?? {})
  for (const source of [openapi, asyncapi])
    for (const path of [[], ...senders.map((sender) => ['operations', sender])])
      addWords({ subject: source.file, kind: 'rule', name: '', place: { source, path } }, add)
  return [...promises.values()]
}

/** `x-untested` at the place, above it, or at the operation: a map of the beginnings of claims and
 *  names to reasons, for example of `event` or `x-record.states status`. */
function readReason({ place, reference = place, claim, name, operation }: Entry): string | null {
  const promise = `${claim} ${name} `
  const { source, path } = reference
  const above = path.map((_, index) => ({ source, path: path.slice(0, path.length - index) }))
  const places = [place, ...above, ...(operation ? [operation.place] : []), { source, path: [] }]
  for (const at of places) {
    const reasons = readWord<Record<string, string>>(at, 'x-untested') ?? {}
    const reason = Object.keys(reasons).find((key) => promise.startsWith(`${key} `))
    if (reason !== undefined) return String(reasons[reason])
  }
  return null
}

function addOperation(contract: Contract, operation: Operation, add: Add): void {
  const { id: subject, place, body, parameters, responses, success, emits } = operation
  for (const { status, place: at } of responses)
    add({ subject, kind: 'status', name: String(status), claim: 'status', place: at })
  for (const type of emits) add({ subject, kind: 'event', name: type, claim: 'x-emits', place })
  for (const parameter of parameters) addParameter(contract, subject, parameter, add)
  if (body) addFields(contract, body.schema, { subject, kind: 'request', part: 'body', add })
  const media = success.content['application/json']
  if (media) addFields(contract, media.schema, { subject, kind: 'field', part: 'response', add })
  for (const { content } of responses)
    for (const { schema } of Object.values(content))
      addWords(
        { subject, kind: 'rule', name: '', place: dereference(contract.sources, schema) },
        add,
      )
  for (const { name, schema } of responses.flatMap(({ headers }) => Object.values(headers))) {
    const at = { source: schema.source, path: schema.path.slice(0, -1) }
    const header = { subject, kind: 'header', name, place: at } as const
    // A header without words has a meaning that only its name tells.
    if (!addWords(header, add)) add({ ...header, claim: `header ${name.toLowerCase()}` })
  }
  addWords({ subject, kind: 'rule', name: '', place }, add)
}

function addParameter(contract: Contract, subject: string, parameter: Parameter, add: Add): void {
  const { name, in: where, schema, place } = parameter
  if (where === 'path') return
  addFields(contract, schema, { subject, kind: 'request', part: 'parameter', add }, name)
  addWords({ subject, kind: 'list', name, place }, add)
  if (readListWords(contract)?.sort.parameter !== name) return
  const items = { ...schema, path: [...schema.path, 'items'], value: schema.value.items ?? {} }
  for (const option of dereference(contract.sources, items).value.enum ?? [])
    add({ subject, kind: 'list', name: String(option), claim: 'sort', place })
}

/** Adds a promise for each word at the place. Returns whether there are any. */
function addWords(entry: Omit<Entry, 'claim'>, add: Add): boolean {
  const words = listWords(entry.place)
  for (const { claim, part } of words)
    add(...shared({ ...entry, claim, name: joinName(entry.name, part) }, entry.place, part))
  return words.length > 0
}

/** A promise about a component of schemas has the name of the component. `subject` and `name` become
 *  a use of it. `part` is the end of the name. */
function shared(entry: Entry, { path }: Place, part = ''): [Entry, Use?] {
  if (path[0] !== 'components' || path[1] !== 'schemas') return [entry]
  const steps = path.slice(3).flatMap((step, index, all) => {
    if (all[index - 1] === 'properties') return [String(step)]
    return step === 'items' || step === 'additionalProperties' ? ['*'] : []
  })
  const { subject, name } = entry
  return [
    { ...entry, subject: String(path[2]), name: joinName(...steps, part) },
    { subject, name },
  ]
}

/** The claims of the words at the place, with the part of the value that each is about. */
function listWords({ source, path }: Place): { claim: string; part: string }[] {
  return WORDS.flatMap((word) => {
    const value = valueAt(source.root, [...path, word])
    if (value === undefined || word === 'x-emits') return []
    if (!WORDS_OF_CLAIMS.includes(word)) return listParts(word, value)
    return Object.entries(value as object).flatMap(([key, below]) =>
      listParts(`${word}.${key}`, below),
    )
  })
}

function listParts(claim: string, value: unknown): { claim: string; part: string }[] {
  if (!WORDS_OF_NAMES.includes(claim) || !isObject(value)) return [{ claim, part: '' }]
  const parts = Array.isArray(value)
    ? value.map((entry) => entry.name ?? entry)
    : Object.keys(value)
  return parts.map((part) => ({ claim, part: String(part) }))
}

function joinName(...parts: string[]): string {
  return parts.filter((part) => part !== '').join('.')
}

interface Fields {
  subject: string
  kind: ContractPromise['kind']
  part: 'body' | 'parameter' | 'response' | 'event' | 'delivery'
  add: Add
}

/** Adds the keywords that restrict the values of each field, and the words of each field. `*` stands
 *  for the entries of a list or map. */
function addFields(
  { sources }: Contract,
  schema: Located<Schema>,
  { subject, kind, part, add }: Fields,
  root = '',
): void {
  const visit = (reference: Located<Schema>, name: string, presence: string[]): void => {
    const place = dereference(sources, reference)
    const { source, path, value } = place
    const restrictions = kind === 'request' || name !== '' ? listRestrictions(value, part) : []
    for (const keyword of [...presence, ...restrictions]) {
      const promise = { subject, kind, name, claim: `${part} ${keyword}`, place, reference }
      // Each operation checks its requests itself, and can leave out a field that another sends.
      if (kind === 'request' || keyword === 'optional') add(promise)
      else add(...shared(promise, reference))
    }
    addWords({ subject, kind: 'rule', name, place }, add)
    for (const { subschema, steps } of listSubschemas(value)) {
      const [keyword, key] = steps
      const child = { source, path: [...path, ...steps], value: subschema }
      if (!isReturnedBy(dereference(sources, child), subject)) continue
      if (keyword === 'properties') {
        const isRequired = value.required?.includes(String(key))
        visit(child, joinName(name, String(key)), [isRequired ? 'required' : 'optional'])
      } else visit(child, ALTERNATIVES.includes(String(keyword)) ? name : joinName(name, '*'), [])
    }
  }
  visit(schema, root, [])
}

/** `x-returned-by` of a field names the only operations that send it. */
function isReturnedBy({ value }: Located<Schema>, operation: string): boolean {
  const senders = value['x-returned-by'] as string[] | undefined
  return senders?.includes(operation) ?? true
}

const ALTERNATIVES = ['allOf', 'anyOf', 'oneOf']

/** Keywords that hold other schemas, and those that only describe. */
const OTHER_KEYWORDS = [
  ...[...ALTERNATIVES, 'properties', 'required', 'items', '$ref', 'discriminator'],
  ...ANNOTATIONS,
]

function listRestrictions(schema: Schema, part: Fields['part']): string[] {
  const { type, nullable, additionalProperties } = schema
  const isText = type === 'string' || type === 'array'
  const hasDefault = ['body', 'parameter'].includes(part) && readDefault(schema) !== undefined
  const keywords = Object.keys(schema).filter((keyword) => {
    switch (keyword) {
      case 'type':
        // Every value of a URL is text.
        return part !== 'parameter' || !isText
      case 'format':
        // `int32` and the like tell generators a size.
        return type === 'string'
      case 'nullable':
        return nullable === true
      case 'additionalProperties':
        return additionalProperties === false
      case 'default':
        return false
      default:
        return !OTHER_KEYWORDS.includes(keyword) && !keyword.startsWith('x-')
    }
  })
  return [...keywords, ...(hasDefault ? ['default'] : [])]
}
