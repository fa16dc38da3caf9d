/** The promises of a contract: what it says about each operation, event and record. oracles.ts says
 *  which oracle tests which promises, and the coverage counts the tests of each. */
import { KNOWN_WORDS } from '../../diff/words.ts'
import type { Contract } from '../../model/contract.ts'
import type { Operation, Parameter } from '../../model/operations.ts'
import { dereference } from '../../model/references.ts'
import { ANNOTATIONS, listSubschemas, readDefault, type Schema } from '../../model/schema.ts'
import { isObject, type Located, type Place, valueAt } from '../../model/source.ts'
import { readListWords } from '../../words/lists.ts'
import { readWord } from '../../words/read.ts'
import type { RecordWords } from '../../words/records.ts'

export interface Use {
  /** An operation, a type of event, or the file of a document. */
  subject: string
  /** For example `404`, `title`, `data.*.id` or `filter[status]`. Empty: the whole subject. */
  name: string
}

/** Its subject and name are those of the first use. */
export interface ContractPromise extends Use {
  kind: 'status' | 'event' | 'field' | 'header' | 'request' | 'list' | 'rule'
  /** Selects the oracles that test the promise: `body maxLength`, `header etag` or `x-filter`. */
  claim: string
  place: Place
  /** Why no test is possible: `x-untested` at the place. */
  reason: string | null
  /** Where a test can test it. A schema of the components is one promise of several operations. */
  uses: Use[]
}

/** Identifies a use of a promise in a run. */
export function keyOf(subject: string, claim: string, name: string): string {
  return `${subject} ${claim} ${name}`
}

interface Entry extends Omit<ContractPromise, 'reason' | 'uses'> {
  /** The end of the name, if each part of a word is a promise. */
  part?: string
}
type Add = (entry: Entry) => void

/** Words that say nothing about what the service does. `x-emits` is a promise for each event. */
const OTHER_WORDS = [
  ...['x-currency', 'x-default', 'x-emits', 'x-enum-descriptions', 'x-enum-varnames'],
  ...['x-extensible-enum', 'x-module', 'x-modules', 'x-subscribable', 'x-test-value'],
  'x-untested',
]
const WORDS = KNOWN_WORDS.filter((word) => !OTHER_WORDS.includes(word))
/** Each key below these words is a claim, for example `x-record.states`. */
const WORDS_OF_CLAIMS = ['x-export-file', 'x-lists', 'x-record']
/** Each key or entry of these words is the name of a promise. */
const WORDS_OF_NAMES = [
  ...['x-emits-when', 'x-emitted-by-system', 'x-refusals', 'x-response-headers'],
  ...['computed', 'fixed_when', 'include', 'initial', 'set_when', 'states'].map(
    (key) => `x-record.${key}`,
  ),
  'x-unmatched-requests',
]

/** Every promise once, in the order of the contract. */
export function listPromises(contract: Contract): ContractPromise[] {
  const { openapi, asyncapi, operations, events } = contract
  const promises = new Map<string, ContractPromise>()
  const add: Add = (entry) => {
    const { subject, name } = entry
    const key = identify(entry)
    const promise = promises.get(key) ?? { ...entry, reason: readReason(contract, entry), uses: [] }
    promise.uses.push({ subject, name })
    promises.set(key, promise)
  }
  for (const operation of operations) addOperation(contract, operation, add)
  for (const { type: subject, payload, headers } of events) {
    addFields(contract, payload, { subject, part: 'event', add })
    addFields(contract, headers, { subject, part: 'delivery', add })
  }
  const senders = Object.keys(valueAt(asyncapi.root, ['operations']) ?? {})
  for (const source of [openapi, asyncapi])
    for (const path of [[], ...senders.map((sender) => ['operations', sender])])
      addWords({ subject: source.file, kind: 'rule', name: '', place: { source, path } }, add)
  return [...promises.values()]
}

/** By its place in the components, or else by its use. Each operation checks its requests itself,
 *  and can leave out a field that another sends. */
function identify({ subject, kind, name, claim, place, part = '' }: Entry): string {
  const { source, path } = place
  const isOwn = kind === 'request' || claim.endsWith(' optional')
  const isComponent = path[0] === 'components' && path[1] === 'schemas'
  return isComponent && !isOwn
    ? [source.file, ...path, claim, part].join(' ')
    : keyOf(subject, claim, name)
}

/** `x-untested` at the place, above it, at the operation, or in the document: a map of claims, and
 *  beginnings of names, to reasons, for example of `event` or `x-record.states status`. */
function readReason({ sources, operations }: Contract, entry: Entry): string | null {
  const { subject, name, claim, place } = entry
  const { source, path } = place
  const target = dereference(sources, { ...place, value: valueAt(source.root, path) })
  const above = path.map((_, index) => ({ source, path: path.slice(0, path.length - index) }))
  const own = operations.filter(({ id }) => id === subject).map((operation) => operation.place)
  const names = [name, name.split('.').at(-1)]
  for (const at of [target, ...above, ...own, { source, path: [] }]) {
    const reasons = readWord<Record<string, string>>(at, 'x-untested') ?? {}
    const reason = Object.keys(reasons).find((key) =>
      names.some((each) => `${claim} ${each} `.startsWith(`${key} `)),
    )
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
  if (body) addFields(contract, body.schema, { subject, part: 'body', add })
  const media = success.content['application/json']
  if (media) addFields(contract, media.schema, { subject, part: 'response', add })
  for (const { schema } of responses.flatMap(({ content }) => Object.values(content))) {
    const at = dereference(contract.sources, schema)
    addWords({ subject, kind: 'rule', name: '', place: at }, add)
  }
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
  addFields(contract, schema, { subject, part: 'parameter', add, root: name })
  addWords({ subject, kind: 'list', name, place }, add)
  if (readListWords(contract)?.sort.parameter !== name) return
  const items = { ...schema, path: [...schema.path, 'items'], value: schema.value.items ?? {} }
  for (const option of dereference(contract.sources, items).value.enum ?? [])
    add({ subject, kind: 'list', name: String(option), claim: 'sort', place })
}

/** Adds the promises of the words at the place. Returns whether there are any. */
function addWords(entry: Omit<Entry, 'claim'>, add: Add): boolean {
  const { source, path } = entry.place
  const words = WORDS.flatMap((word): [string, unknown][] => {
    const value = valueAt(source.root, [...path, word])
    if (value === undefined) return []
    if (!WORDS_OF_CLAIMS.includes(word)) return [[word, value]]
    return Object.entries(value as object).map(([key, below]) => [`${word}.${key}`, below])
  })
  for (const [claim, value] of words)
    for (const part of listParts(claim, value))
      add({ ...entry, claim, part, name: joinName(entry.name, part) })
  return words.length > 0
}

function listParts(claim: string, value: unknown): string[] {
  if (!WORDS_OF_NAMES.includes(claim) || !isObject(value)) return ['']
  return Array.isArray(value)
    ? value.map((entry) => String(entry.name ?? entry))
    : Object.keys(value)
}

function joinName(...parts: string[]): string {
  return parts.filter((part) => part !== '').join('.')
}

interface Fields {
  subject: string
  part: 'body' | 'parameter' | 'response' | 'event' | 'delivery'
  add: Add
  /** The name of the whole. */
  root?: string
}

/** Adds the words of each field, and for a request the keywords that restrict its values. `*` stands
 *  for the entries of a list or map. */
function addFields(
  { sources }: Contract,
  schema: Located<Schema>,
  { subject, part, add, root = '' }: Fields,
): void {
  const kind = part === 'body' || part === 'parameter' ? 'request' : 'field'
  const visit = (reference: Located<Schema>, name: string, presence: string[]): void => {
    const place = dereference(sources, reference)
    const { source, path, value } = place
    const keywords =
      kind === 'request' ? listRestrictions(value, part) : listVariations(value, name)
    for (const keyword of [...presence, ...keywords])
      add({ subject, kind, name, claim: `${part} ${keyword}`, place: reference })
    addWords({ subject, kind: 'rule', name, place }, add)
    for (const { subschema, steps } of listSubschemas(value)) {
      const [keyword, key] = steps
      if (keyword === 'properties' && isIncluded(value, String(key))) continue
      const child = { source, path: [...path, ...steps], value: subschema }
      if (!isReturnedBy(dereference(sources, child), subject)) continue
      if (keyword === 'properties') {
        const isOptional = !value.required?.includes(String(key))
        const required = kind === 'request' ? ['required'] : []
        visit(child, joinName(name, String(key)), isOptional ? ['optional'] : required)
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

/** An oracle compares the field with the embedded record, whose fields have promises of their own. */
function isIncluded(schema: Schema, field: string): boolean {
  const words = schema['x-record'] as RecordWords | undefined
  return Object.hasOwn(words?.include ?? {}, field)
}

const ALTERNATIVES = ['allOf', 'anyOf', 'oneOf']

/** Keywords that restrict no value: those that hold other schemas, and those that only describe. */
const OTHER_KEYWORDS = [
  ...[...ALTERNATIVES, 'properties', 'required', 'items', '$ref', 'discriminator', 'default'],
  ...ANNOTATIONS,
]

/** A field of a response or event must occur with a value, and with null. A validator compares each
 *  value with all keywords. Nothing is said about the entries of `items: {}`. */
function listVariations(schema: Schema, name: string): string[] {
  if (name === '' || Object.keys(schema).length === 0) return []
  return schema.nullable ? ['type', 'nullable'] : ['type']
}

function listRestrictions(schema: Schema, part: Fields['part']): string[] {
  const { type, nullable, additionalProperties } = schema
  const isIgnored: Record<string, boolean> = {
    // Every value of a URL is text.
    type: part === 'parameter' && (type === 'string' || type === 'array'),
    // `int32` and the like tell generators a size.
    format: type !== 'string',
    nullable: !nullable,
    additionalProperties: additionalProperties !== false,
  }
  const keywords = Object.keys(schema).filter(
    (keyword) =>
      !keyword.startsWith('x-') && !(isIgnored[keyword] ?? OTHER_KEYWORDS.includes(keyword)),
  )
  return readDefault(schema) === undefined ? keywords : [...keywords, 'default']
}
