import type { ParameterizedContext } from 'koa'
import type { Principal } from '../auth/api-key.ts'
import type { RateLimitState } from '../auth/rate-limit.ts'
import type { OperationId } from '../generated/operations.ts'

/** What the middleware of a request leaves for the middleware after it. */
export interface RequestState {
  requestId: string
  /** Of a path of the contract. */
  operationId?: OperationId
  pathParameters?: Record<string, string>
  /** Of an authenticated request. */
  principal?: Principal
  quota?: Promise<RateLimitState>
  /** The JSON bodies, as text. */
  requestText?: string
  responseText?: string
}

export type Context = ParameterizedContext<RequestState>
export type Next = () => Promise<unknown>
