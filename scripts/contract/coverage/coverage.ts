/** Counts how often each promise of the contract was tested, and by which oracle. */
import type { Contract } from '../../model/contract.ts'
import type { Operation } from '../../model/operations.ts'
import { type ContractPromise, keyOf, listPromises, type Use } from './promises.ts'
import { Refusals } from './refusals.ts'
import { hasField } from './response-fields.ts'
import { CONFORMANCE, DREDD, listTesters, type Tester } from './testers.ts'

/** A promise: a cell of the matrix in the report. */
export interface Cell {
  /** An operation, or another subject of a promise. */
  operation: string
  kind: ContractPromise['kind']
  /** For example `404`, `participant.updated` or `data.*.note`. */
  name: string
  claim: string
  /** The number of tests. For a status, event or optional field: of occurrences. */
  seen: number
  /** The number of tests by the name of the oracle. */
  oracles: Record<string, number>
  /** Why the cell need not be tested. Null if it must be tested. */
  reason: string | null
}

/** Functions with which an oracle counts its tests. They ignore promises that the contract does not
 *  have. */
export interface Tests {
  /** Counts a test of a promise (promises.ts). Called after the comparison. `subject` is an
   *  operation, an event type, or the file of a document. */
  tested(subject: string, claim: string, name?: string): void
  /** Counts the promises about the fields that the value has. */
  testedFields(subject: string, part: 'response' | 'event' | 'delivery', value: unknown): void
}

/** An operation that was not tested. */
export interface Untested {
  operation: string
  reason: string
}

/** Statuses that requests of a client cannot cause reliably. */
const UNREACHABLE: Record<string, string> = {
  409: 'needs a request or an export that is in progress',
  410: 'needs an export that is one week old',
  429: 'needs a lower rate limit',
  500: 'needs a defect in the service',
  501: 'needs an operation without a handler',
  503: 'needs an unavailable database',
}
const ONLY_DREDD = 'needs a file that only the tests without --url send'
const NO_RESTRICTED_KEY =
  'needs a Read Only key of a user without the Finance permission: use --restricted-key'

/** The claim of a field that a response may lack. */
const OPTIONAL = 'response optional'
/** `x-response-headers` is a word of this document. */
const COMMON = 'openapi.yaml'

interface Extent {
  hasRestrictedKey: boolean
  /** The command started the service, so that every oracle has what it needs. */
  isOwnService?: boolean
}

type UsedCell = Use & { claim: string; cell: Cell }

export class Coverage {
  /** Refusals of data that the schemas permit. */
  readonly refusals = new Refusals()
  readonly #hasRestrictedKey: boolean
  /** The operations whose body is a file. */
  readonly #takeFiles: string[]
  readonly #testsAll: boolean
  /** The optional fields of objects that no response had. Only requests of other operations may cause
   *  such objects. */
  readonly #withoutObject: Set<Cell>
  /** The run tests all operations of its own service. */
  readonly #isWhole: boolean
  readonly #cells: Cell[]
  /** By each use of its promise. */
  readonly #cellsByKey: Map<string, Cell>
  /** By the subject and the first word of the claim, for example `createTask response`. */
  readonly #fields: Map<string, UsedCell[]>
  /** The cells of headers of responses, by operation. */
  readonly #headers: Map<string, Cell[]>
  readonly #skipped = new Map<string, string>()

  /** `ids`: the operations to test. */
  constructor(contract: Contract, ids: readonly string[], extent: Extent) {
    const others = contract.operations.map(({ id }) => id).filter((id) => !ids.includes(id))
    const uses = listPromises(contract).flatMap(
      ({ uses: all, kind, claim, reason }): UsedCell[] => {
        const own = all.filter(({ subject }) => !others.includes(subject))
        const [first] = own
        if (first === undefined) return []
        const { subject: operation, name } = first
        const cell: Cell = { operation, kind, name, claim, seen: 0, oracles: {}, reason }
        return own.map((use) => ({ ...use, claim, cell }))
      },
    )
    this.#hasRestrictedKey = extent.hasRestrictedKey
    this.#takeFiles = contract.operations
      .filter(({ files }) => files.length > 0)
      .map(({ id }) => id)
    this.#testsAll = others.length === 0
    this.#isWhole = extent.isOwnService === true && this.#testsAll
    this.#cells = [...new Set(uses.map(({ cell }) => cell))]
    this.#withoutObject = new Set(this.#cells.filter(({ claim }) => claim === OPTIONAL))
    this.#cellsByKey = new Map(
      uses.map(({ subject, claim, name, cell }) => [keyOf(subject, claim, name), cell]),
    )
    this.#fields = Map.groupBy(uses, ({ subject, claim }) => `${subject} ${claim.split(' ')[0]}`)
    this.#headers = Map.groupBy(
      this.#cells.filter(({ kind, claim }) => kind === 'header' || claim === 'x-response-headers'),
      ({ operation }) => operation,
    )
  }

  testsBy(oracle: string): Tests {
    return {
      tested: (subject, claim, name = '') => {
        const cell = this.#cellsByKey.get(keyOf(subject, claim, name))
        if (cell !== undefined) count(cell, oracle)
      },
      testedFields: (subject, part, value) => {
        for (const { name, claim, cell } of this.#fields.get(`${subject} ${part}`) ?? []) {
          if (hasField(value, name, VALUES[claim.slice(part.length + 1)] ?? isPresent))
            count(cell, oracle)
          if (this.#withoutObject.has(cell) && hasField(value, parentOf(name), isPresent))
            this.#withoutObject.delete(cell)
        }
      },
    }
  }

  sawStatus(operation: string, status: number, oracle = CONFORMANCE.name): void {
    this.testsBy(oracle).tested(operation, 'status', String(status))
  }

  /** Counts the promises about these headers that the tester tests in each response. */
  testedHeaders(
    { name: oracle, tests = [] }: Tester,
    operation: string,
    names: Iterable<string>,
  ): void {
    const present = new Set([...names].map((name) => name.toLowerCase()))
    const cells = [operation, COMMON].flatMap((subject) => this.#headers.get(subject) ?? [])
    for (const cell of cells)
      if (tests.includes(cell.claim) && present.has(cell.name.toLowerCase())) count(cell, oracle)
  }

  hasSeenAllEvents({ id, emits }: Operation): boolean {
    const cells = emits.map((type) => this.#cellsByKey.get(keyOf(id, 'x-emits', type)))
    return cells.every((cell) => cell === undefined || cell.seen > 0)
  }

  /** Notes that the operation is not tested. */
  skip(operation: string, reason: string): void {
    this.#skipped.set(operation, reason)
  }

  listUntested(): Untested[] {
    return [...this.#skipped].map(([operation, reason]) => ({ operation, reason }))
  }

  /** The cells of the operations that were tested. In a whole run, also one for each promise that was
   *  tested in spite of `x-untested`. */
  listCells(cases: readonly Result[] = [], oracles: readonly Tester[] = []): Cell[] {
    const cells = this.#cells.filter(({ operation }) => !this.#skipped.has(operation))
    const withReasons = cells.map((cell) => ({
      ...cell,
      reason: cell.reason ?? this.#reasonFor(cell, cases, oracles),
    }))
    return [...withReasons, ...(this.#isWhole ? listStaleReasons(cells) : [])]
  }

  #reasonFor(cell: Cell, cases: readonly Result[], oracles: readonly Tester[]): string | null {
    const { operation, kind, name, claim } = cell
    if (claim === 'status' && name === '403' && !this.#hasRestrictedKey) return NO_RESTRICTED_KEY
    const isOfFile = ['413', '415'].includes(name) && this.#takeFiles.includes(operation)
    if (claim === 'status' && isOfFile) return ONLY_DREDD
    if (claim === 'status') return UNREACHABLE[name] ?? null
    if (kind === 'event') return null
    if (claim === OPTIONAL)
      return this.#testsAll || !this.#withoutObject.has(cell) ? null : 'no response had its object'
    if (!this.#isWhole) return 'is demanded only of a run of all operations without --url'
    const testers = listTesters(oracles, claim)
    if (testers.includes(CONFORMANCE) || testers.includes(DREDD)) return null
    const own = cases.filter((one) => testers.some((tester) => tester.name === one.name))
    if (own.length === 0) return 'has an oracle that had nothing to check'
    return own.some(({ failures }) => failures.length > 0) ? 'has an oracle that failed' : null
  }
}

/** The result of an oracle for an operation. */
interface Result {
  name: string
  failures: readonly unknown[]
}

function listStaleReasons(cells: Cell[]): Cell[] {
  return cells
    .filter(({ seen, reason }) => seen > 0 && reason !== null)
    .map((cell): Cell => {
      const name = `${cell.claim} ${cell.name}`.trim()
      return { ...cell, kind: 'rule', name, claim: 'x-untested', seen: 0, reason: null }
    })
}

function count(cell: Cell, oracle: string): void {
  cell.seen += 1
  cell.oracles[oracle] = (cell.oracles[oracle] ?? 0) + 1
}

/** The values of a field that test a claim: by default, values that are not null. */
const VALUES: Record<string, (value: unknown) => boolean> = {
  nullable: (value) => value === null,
  optional: () => true,
}
const isPresent = (value: unknown): boolean => value !== null

/** The object or list that has the field: empty for the whole body. */
function parentOf(field: string): string {
  return field.slice(0, Math.max(0, field.lastIndexOf('.')))
}

/** Whether the cell must be tested, but was not. */
export function isMissing({ seen, reason }: Cell): boolean {
  return seen === 0 && reason === null
}

export function describeMissing({ kind, name, claim }: Cell): string {
  if (claim === 'x-untested') return `a check tested "${name}": remove the reason from x-untested`
  const isOccurrence = ['status', 'event'].includes(kind) || claim === OPTIONAL
  if (isOccurrence) return `the ${kind} ${name} is documented, but never occurred`
  return `no check tested "${claim}"${name && ` of ${name}`}`
}

/** Whether the cell was not tested, and need not be. */
export function isExcused({ seen, reason }: Cell): boolean {
  return seen === 0 && reason !== null
}
