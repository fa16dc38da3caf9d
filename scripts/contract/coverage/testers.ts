/** What tests the promises of a contract: the oracles (oracles.ts), and two other parts of the suite. */

/** Tests promises of the contract (promises.ts). */
export interface Tester {
  name: string
  /** The claims of the promises that the oracle tests. It calls `run.tested` for each promise after
   *  a comparison. A run fails if no oracle has done so. */
  tests?: readonly string[]
}

/** `prefixed('body', 'type')` is `['body type']`. */
export const prefixed = (part: string, ...keywords: string[]): string[] =>
  keywords.map((keyword) => `${part} ${keyword}`)

const ENTRY_LIMITS = ['minItems', 'maxItems', 'uniqueItems', 'maxProperties']
const LIMITS = ['minLength', 'maxLength', 'minimum', 'maximum', ...ENTRY_LIMITS]
export const RESTRICTIONS = ['type', 'enum', 'format', 'pattern', 'additionalProperties', ...LIMITS]
/** Each field of a response, event or delivery occurs with a value, without one, and as null. */
export const FIELD = ['type', 'optional', 'nullable']

/** What the suite tests in each response, for every oracle. */
export const CONFORMANCE: Tester = {
  name: 'each response conforms',
  tests: [
    'status',
    ...prefixed('response', ...FIELD),
    ...['x-at-most', 'x-deprecated-since', 'x-epoch-seconds', 'x-parameters'],
    ...['x-response-headers', 'x-sunset'],
  ],
}

/** dredd/ tests each declared response once. */
export const DREDD: Tester = {
  name: 'Dredd',
  tests: ['status', 'header accept', 'x-at-most', 'x-epoch-seconds', 'x-parameters'],
}

/** Those that say that they test promises with this claim. */
export function listTesters(oracles: readonly Tester[], claim: string): Tester[] {
  return [CONFORMANCE, DREDD, ...oracles].filter(({ tests = [] }) => tests.includes(claim))
}
