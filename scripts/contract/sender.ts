/** Sends the requests of a run, counts them and remembers the latest exchanges. */
import { Refused } from '../../errors.ts'
import type { Contract } from '../model/contract.ts'
import { findIdempotencyKey } from '../words/idempotency.ts'
import { ContractBroken } from './contract-broken.ts'
import type { Coverage } from './coverage/coverage.ts'
import { HttpClient } from './http-client.ts'
import type { ReceivedResponse, Request } from './request.ts'

/** Enough for any failure: each reports fewer exchanges than this. */
const MAX_REMEMBERED_EXCHANGES = 200

export interface Exchange {
  request: Request
  /** Null: no response arrived. */
  response: ReceivedResponse | null
  /** Epoch milliseconds. */
  startedAt: number
  durationMs: number
}

export class Sender {
  requestCount = 0
  readonly #coverage: Coverage
  readonly #client: HttpClient
  #latest: Exchange[] = []

  constructor(url: string, contract: Contract, coverage: Coverage) {
    this.#coverage = coverage
    const keys = contract.operations.map(findIdempotencyKey)
    const names = keys.flatMap((key) => (key ? [key.name] : []))
    this.#client = new HttpClient(url, names)
  }

  /** Counts the status of the response for the operation, and each 429 after which the client sends
   *  the request again. Throws ContractBroken if no response arrives. */
  async send(request: Request, operationId?: string): Promise<ReceivedResponse> {
    this.requestCount += 1
    const countStatus = ({ status }: ReceivedResponse): void => {
      if (operationId !== undefined) this.#coverage.sawStatus(operationId, status)
    }
    const startedAt = Date.now()
    const remember = (response: ReceivedResponse | null): void => {
      const durationMs = Date.now() - startedAt
      this.#latest.push({ request, response, startedAt, durationMs })
      this.#latest = this.#latest.slice(-MAX_REMEMBERED_EXCHANGES)
    }
    try {
      const response = await this.#client.exchange(request, countStatus)
      countStatus(response)
      remember(response)
      return response
    } catch (error) {
      remember(null)
      throw new ContractBroken('no_answer', request, `no response: ${describe(error as Error)}`)
    }
  }

  /** The latest exchange with this request, or with one of the same method, path and body. */
  findExchange(request: Request): Exchange | undefined {
    const isEqual = (other: Request): boolean =>
      other.method === request.method && other.path === request.path && other.body === request.body
    return (
      this.#latest.findLast((exchange) => exchange.request === request) ??
      this.#latest.findLast((exchange) => isEqual(exchange.request))
    )
  }

  close(): void {
    this.#client.close()
  }
}

/** Throws `Refused` if no response arrives, so that no run begins whose requests would all fail. */
export async function assertResponds(url: string): Promise<void> {
  const client = new HttpClient(url, [])
  const request = { method: 'GET', path: '/', headers: {}, key: null }
  await client.exchange(request).catch((cause) => {
    throw new Refused(
      `Nothing responds at ${url}: ${describe(cause)}. Start the service, or correct the URL.`,
      { cause },
    )
  })
}

/** The message, or the code of an error without a message, such as an AggregateError. */
function describe({ message, code, name }: NodeJS.ErrnoException): string {
  return message || code || name
}
