import type { ParameterizedContext } from 'koa'
import type { Principal } from '../auth/api-key.ts'
import type { OperationId } from '../generated/operations.ts'

/** State that middleware stores for the middleware after it. */
export interface RequestState {
  requestId: string
  /** Set when the path and method match an operation of the contract. */
  operationId?: OperationId
  pathParameters?: Record<string, string>
  /** Set when the request is authenticated. */
  principal?: Principal
  /** The owner of the key that the request has and that is revoked. */
  rejected?: Principal
  /** The JSON bodies, as text. */
  requestText?: string
  responseText?: string
}

export type Context = ParameterizedContext<RequestState>
export type Next = () => Promise<unknown>
