import type { ParameterizedContext } from 'koa'
import type { OperationId } from '../generated/operations.ts'
import type { Principal } from '../records/api-keys.ts'

/** State of a request that middleware stores for other middleware. */
export interface RequestState {
  requestId: string
  /** `traceparent` of the request's span. Without a span, that of the client, if it sent one. */
  traceparent?: string
  /** Set when the path and method match an operation of the contract. */
  operationId?: OperationId
  pathParameters?: Record<string, string>
  /** Set when the request is authenticated. */
  principal?: Principal
  /** The owner of a known API key that is not accepted, for example because it is revoked. */
  rejectedPrincipal?: Principal
  /** The suspension of the account is the only reason why the key is not accepted. */
  isSuspended?: boolean
  /** The JSON body of the request, as text. */
  requestText?: string
}

export type Context = ParameterizedContext<RequestState>
export type Next = () => Promise<unknown>
