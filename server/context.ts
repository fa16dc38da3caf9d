import type { ParameterizedContext } from 'koa'
import type { OperationId } from '../generated/operations.ts'
import type { Principal } from '../records/api-keys.ts'

/** State that middleware stores for the middleware after it. */
export interface RequestState {
  requestId: string
  /** The trace: of the span, or of the client. Undefined: there is none. */
  traceparent?: string
  /** Set when the path and method match an operation of the contract. */
  operationId?: OperationId
  pathParameters?: Record<string, string>
  /** Set when the request is authenticated. */
  principal?: Principal
  /** The owner of the key that the request has and that is not accepted. */
  rejected?: Principal
  /** The key is not accepted only because its account is suspended. */
  isSuspended?: boolean
  /** The JSON body of the request, as text. */
  requestText?: string
}

export type Context = ParameterizedContext<RequestState>
export type Next = () => Promise<unknown>
