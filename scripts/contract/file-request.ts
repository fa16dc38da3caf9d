import type { JsonObject } from '../model/json.ts'
import type { Operation } from '../model/operations.ts'

/** The parts of a request that sends a file. */
interface FileRequest {
  mediaType: string
  text: string
  query: JsonObject
}

/** The first example of the file, with the examples of the query parameters. Undefined if the operation
 *  takes no file. */
export function exampleFile({ files: [file], parameters }: Operation): FileRequest | undefined {
  if (file === undefined) return undefined
  const query = parameters.filter((one) => one.in === 'query' && one.example !== undefined)
  return {
    mediaType: file.mediaType,
    text: String(file.example),
    query: Object.fromEntries(query.map(({ name, example }) => [name, example])) as JsonObject,
  }
}
