/** Writes a request as code in several languages. The `client` sample uses our package; all
 *  others need only curl or a standard library. Generators from npm are no alternative: they put
 *  the key into the code as a literal, ignore errors in Go and force TLS in Ruby. */
import type { Api, ApiOperation } from './api.ts'
import type { CodeSample } from './code.ts'
import { client } from './samples/client.ts'
import { curl } from './samples/curl.ts'
import { go } from './samples/go.ts'
import { php } from './samples/php.ts'
import { python } from './samples/python.ts'
import { exampleRequest } from './samples/request.ts'
import { ruby } from './samples/ruby.ts'
import { typescript } from './samples/typescript.ts'

/** The samples of a request, in the order of the tabs. */
export function codeSamples(operation: ApiOperation, baseUrl: string, api: Api): CodeSample[] {
  const request = exampleRequest(api, operation, baseUrl)
  return Object.entries({ curl, client, typescript, python, php, go, ruby }).map(
    ([language, write]) => ({ language, code: write(request) }),
  )
}
