/** Oracle: headers with `x-counts-down` count down, and headers with `x-echoes` repeat a header of
 *  the request. */
import { randomUUID } from 'node:crypto'
import type { Operation } from '../../model/operations.ts'
import { listWordedHeaders, type WordedHeader } from '../../words/headers.ts'
import { ContractBroken } from '../contract-broken.ts'
import type { Request } from '../request.ts'
import { type Check, prepareRequest, type Run } from '../run.ts'
import { isValid } from '../values/validity.ts'

const MAX_TRIES = 4

export async function* headerChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const path = await run.records.sharedPath(operation)
  // A write gets an unknown parameter, so that the service refuses it and changes nothing.
  const query = operation.method === 'get' ? {} : { not_a_parameter: 1 }
  const request = await prepareRequest(run, operation, { query }, path)
  for (const header of listWordedHeaders(operation.success)) {
    const { 'x-echoes': echoed, 'x-counts-down': countsDown } = header
    if (echoed !== undefined) yield* echoChecks(run, operation, request, { ...header, echoed })
    if (countsDown)
      yield {
        what: `${header.name} falls by one`,
        perform: () => assertCountsDown(run, operation, request, header),
      }
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
  yield {
    what: `${echoed} of the client`,
    async perform() {
      const value = `contract.${randomUUID()}`
      if (!isValid(schema, value)) return
      const { probe, returned } = await send(value)
      if (returned !== value) throw broken(probe, `${name} is ${returned} instead of ${value}`)
    },
  }
  yield {
    what: `an invalid ${echoed}, and requests without ${echoed}`,
    async perform() {
      const sent = ['not valid!', undefined, undefined]
      const used = new Set<string | null>(['not valid!'])
      for (const value of sent) {
        const { probe, returned } = await send(value)
        if (used.has(returned)) throw broken(probe, `${name} is ${returned} instead of a new value`)
        used.add(returned)
      }
    },
  }
}

/** Tries again, because a new window of the rate limit can begin between the two requests. */
async function assertCountsDown(
  run: Run,
  operation: Operation,
  request: Request,
  { name }: WordedHeader,
): Promise<void> {
  const read = async () => {
    const { headers } = await run.send(operation, request)
    return Number(headers.get(name))
  }
  let problem = ''
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const [before, after] = [await read(), await read()]
    if (after === before - 1) return
    problem = `${name} is ${after} after ${before}`
  }
  throw broken(request, problem)
}

function broken(request: Request, message: string): ContractBroken {
  return new ContractBroken('header_meaning', request, message)
}
