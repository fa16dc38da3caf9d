/** Oracle: headers with `x-counts-down` count down, and headers with `x-echoes` repeat a header of
 *  the request. */
import { randomUUID } from 'node:crypto'
import type { Operation } from '../../model/operations.ts'
import type { Schema } from '../../model/schema.ts'
import { listWordedHeaders, type WordedHeader } from '../../words/headers.ts'
import { failuresOf } from '../contract-broken.ts'
import type { Request } from '../request.ts'
import { type Check, compareInTries, prepareRequest, type Run } from '../run.ts'
import { isValid } from '../values/validity.ts'

const broken = failuresOf('header_meaning')

export async function* headerChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const path = await run.records.sharedPath(operation)
  // A write gets an unknown parameter, so that the service refuses it and changes nothing.
  const query = operation.method === 'get' ? {} : { not_a_parameter: 1 }
  const request = await prepareRequest(run, operation, { query }, path)
  for (const header of listWordedHeaders(operation.success)) {
    const { 'x-echoes': echoed, 'x-counts-down': countsDown, 'x-scope': scope } = header
    if (echoed !== undefined) yield* echoChecks(run, operation, request, { ...header, echoed })
    if (!countsDown) continue
    yield* firstCountChecks(run, operation, request, header)
    for (const count of listCounts(run, request, scope))
      yield {
        what: `${header.name} ${count.what}`,
        perform: () => assertCountsDown(run, operation, header, count),
      }
  }
}

/** Requests after which a number that counts down is smaller by `fall`. */
interface Count {
  what: string
  first: Request
  between: Request
  last: Request
  fall: number
}

function listCounts({ target }: Run, request: Request, scope: 'user' | undefined): Count[] {
  const { restrictedKey, noPermissionKey } = target
  const refused = { ...request, method: 'PUT', body: undefined }
  const counts: Count[] = [
    { what: 'counts each request', first: request, between: refused, last: request, fall: 2 },
  ]
  if (scope === 'user' && restrictedKey !== undefined && noPermissionKey !== undefined)
    counts.push({
      what: 'counts all requests of one user',
      first: { ...request, key: restrictedKey },
      between: request,
      last: { ...request, key: noPermissionKey },
      fall: 1,
    })
  return counts
}

/** Sends the first request of a new account. */
function* firstCountChecks(
  run: Run,
  operation: Operation,
  request: Request,
  { name, 'x-counts-from': from }: WordedHeader,
): Generator<Check> {
  const { newAccount } = run.target
  if (from === undefined || newAccount === undefined) return
  yield {
    what: `${name} of the first request`,
    async perform() {
      const { key } = await newAccount()
      const first = { ...request, key }
      const { headers } = await run.send(operation, first)
      const [left, all] = [Number(headers.get(name)), Number(headers.get(from))]
      if (left !== all - 1) throw broken(first, `${name} is ${left} of ${all} after one request`)
      run.tested(operation.id, 'x-counts-from', name)
    },
  }
}

function* echoChecks(
  run: Run,
  operation: Operation,
  request: Request,
  { name, schema, echoed }: WordedHeader & { echoed: string },
): Generator<Check> {
  const send = async (value: string | undefined) => {
    const headers = value === undefined ? {} : { [echoed]: value }
    const probe = { ...request, headers: { ...request.headers, ...headers } }
    const response = await run.send(operation, probe)
    return { probe, returned: response.headers.get(name) }
  }
  const { valid, invalid } = listEchoValues(schema)
  for (const value of valid)
    yield {
      what: `${echoed} of the client: ${value.length} characters`,
      async perform() {
        const { probe, returned } = await send(value)
        if (returned !== value) throw broken(probe, `${name} is ${returned} instead of ${value}`)
        run.tested(operation.id, 'x-echoes', name)
      },
    }
  yield {
    what: `an invalid ${echoed}, and requests without ${echoed}`,
    async perform() {
      const sent = [...invalid, undefined, undefined]
      const used = new Set<string | null>(invalid)
      for (const value of sent) {
        const { probe, returned } = await send(value)
        if (used.has(returned)) throw broken(probe, `${name} is ${returned} instead of a new value`)
        used.add(returned)
      }
    },
  }
}

/** The longest value that the tests send. */
const MAX_ECHO_CHARACTERS = 1024

/** By the schema: valid are a usual value, all characters that can stand alone, and the shortest and
 *  the longest text; invalid is a text that is one character too long. */
function listEchoValues(schema: Schema): { valid: string[]; invalid: string[] } {
  const fits = (value: string): boolean => isValid(schema, value)
  const visible = Array.from({ length: 94 }, (_, index) => String.fromCharCode(0x21 + index))
  const texts = Array.from({ length: MAX_ECHO_CHARACTERS }, (_, index) => 'x'.repeat(index + 1))
  const byLength = texts.filter(fits)
  const longest = byLength.at(-1) ?? ''
  const valid = [
    `contract.${randomUUID()}`,
    visible.filter(fits).join(''),
    byLength[0] ?? '',
    longest,
  ]
  return {
    valid: [...new Set(valid)].filter(fits),
    invalid: ['not valid!', `${longest}x`].filter((value) => !fits(value)),
  }
}

/** A new window of the rate limit can begin between the requests. */
async function assertCountsDown(
  run: Run,
  operation: Operation,
  { name }: WordedHeader,
  { what, first, between, last, fall }: Count,
): Promise<void> {
  const read = async (request: Request) => {
    const { headers } = await run.send(operation, request)
    return Number(headers.get(name))
  }
  await compareInTries(async () => {
    const before = await read(first)
    await run.sendUnchecked(between)
    const after = await read(last)
    if (after === before - fall) return undefined
    return broken(last, `${what}: ${name} is ${after} instead of ${before - fall}`)
  })
  run.tested(operation.id, 'x-counts-down', name)
  if (first.key !== last.key) run.tested(operation.id, 'x-scope', name)
}
