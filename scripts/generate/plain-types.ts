/** The types of handlers, for a service that is made from an OpenAPI document. They are a part of
 *  its generated/operations.ts. */
export const HANDLER_TYPES = `
type Group<Id extends OperationId, Name extends string> = Operations[Id] extends {
  parameters: { [N in Name]?: infer Values }
}
  ? Values
  : Record<string, never>

type Media<T> = T extends { content: infer Content } ? Content[keyof Content] : undefined

/** A validated request. Header names are in lower case. */
export interface Call<Id extends OperationId> {
  path: Group<Id, 'path'>
  query: Group<Id, 'query'>
  headers: Readonly<Record<string, unknown>>
  cookies: Group<Id, 'cookie'>
  body: Operations[Id] extends { requestBody?: infer Body } ? Media<NonNullable<Body>> : undefined
  /** What \`verify\` of security.ts returned. */
  caller: unknown
}

type Responses<Id extends OperationId> = Operations[Id] extends { responses: infer All } ? All : never

type OneResult<Status, Response> = {
  status: Status extends number ? Status : number
  headers?: Readonly<Record<string, string>>
  body?: Media<Response>
  /** Default: the first media type of the response. */
  mediaType?: string
}

/** One of the responses of the document, or 501 until the handler is written. */
export type Result<Id extends OperationId> =
  | { [Status in keyof Responses<Id>]: OneResult<Status, Responses<Id>[Status]> }[keyof Responses<Id>]
  | { status: 501 }

export type Handler<Id extends OperationId> = (call: Call<Id>) => Promise<Result<Id>>
`
