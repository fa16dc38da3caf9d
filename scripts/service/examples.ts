/** The results of a mock: the examples of the document, or values made up from its schemas. */
import { StatusError } from '../../errors.ts'
import {
  isJson,
  type MediaType,
  type Operation,
  type OperationResponse,
} from '../model/operations.ts'
import { type Call, concreteType, findResponse, type Result, type Tools } from './service.ts'

/** `Prefer: code=404` chooses another response of the operation. `like` is a value that the body of
 *  the response should resemble, such as the body of the request: see `Sampler` in samples.ts. */
export async function respondWithExample(
  { operation, request }: Call,
  tools: Tools,
  like?: unknown,
): Promise<Result> {
  const preferred = /\bcode=(\d{3})\b/.exec(String(request.headers.prefer ?? ''))?.[1]
  const status = preferred === undefined ? operation.success.status : Number(preferred)
  const response = findResponse(operation, status)
  if (!response) throw new StatusError(400, `${operation.id} does not declare ${status}.`)
  const accept = String(request.headers.accept ?? '*/*')
  return exampleOf(tools, operation, { ...response, status }, { accept, like })
}

function exampleOf(
  tools: Tools,
  operation: Operation,
  { status, headers, content }: OperationResponse,
  { accept, like }: { accept: string; like: unknown },
): Result {
  const required = Object.values(headers).filter((header) => header.required)
  const result = {
    status,
    headers: Object.fromEntries(
      required.map(({ name, schema, example }) => [
        name,
        String(tools.sampler.sample(schema, 'response', example) ?? ''),
      ]),
    ),
  }
  const media = Object.values(content)
  const chosen = media.find(({ mediaType }) => accept.includes(mediaType)) ?? media[0]
  if (!chosen) return result
  const { mediaType } = chosen
  return {
    ...result,
    mediaType: concreteType(mediaType),
    body: bodyOf(tools, `${operation.id} ${status}`, chosen, like),
  }
}

function bodyOf(
  { sampler }: Tools,
  responseName: string,
  { mediaType, schema, example }: MediaType,
  like: unknown,
): unknown {
  if (!isJson(mediaType)) return typeof example === 'string' ? example : 'example'
  const value = sampler.sample(schema, 'response', example, like)
  if (value === undefined)
    throw new Error(`${responseName} needs an example: none can be made up from its schema`)
  return value
}
