import type { Contract } from '../model/contract.ts'
import { isJson, type Operation } from '../model/operations.ts'
import { isObject } from '../model/source.ts'
import { respondWithExample } from '../service/examples.ts'
import type { Call, Result, Tools } from '../service/service.ts'
import { MockRecords } from './records.ts'

/** The handler of a mock with state, for an OpenAPI document of another team. The handler responds
 *  with the records that requests have created, and with the example of an operation that does not
 *  return such records. */
export function newRecordHandler(
  contract: Contract,
): (call: Call, tools: Tools) => Promise<Result> {
  let records: MockRecords | undefined
  return async (call, tools) => {
    const { operation, path, query, body, request } = call
    const example = () => respondWithExample(call, tools, body)
    const prefersStatus = /\bcode=/.test(String(request.headers.prefer ?? ''))
    if (prefersStatus) return example()
    records ??= new MockRecords(contract, (sampledOperation, like) =>
      sampleOf(tools, sampledOperation, like),
    )
    records.assertFound(operation, path)
    const sent = isObject(body) && !Array.isArray(body) ? body : {}
    const isMergePatch = /merge-patch\+json/.test(request.headers['content-type'] ?? '')
    const outcome = records.perform({ operation, path, query, sent, isMergePatch })
    const result = await example()
    if (outcome?.body === undefined || !isJson(result.mediaType ?? '')) return result
    return { ...result, body: outcome.body }
  }
}

/** `like`: see `Sampler` in service/samples.ts. */
function sampleOf({ sampler }: Tools, { success }: Operation, like: unknown): unknown {
  const media = Object.values(success.content).find(({ mediaType }) => isJson(mediaType))
  return media && sampler.sample(media.schema, 'response', media.example, like)
}
