/** Runs Dredd, and adds support for bracketed query names and for the whole JSON Schema of response
 *  bodies. */
import { EventEmitter } from 'node:events'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Contract } from '../../model/contract.ts'
import type { Operation, OperationResponse } from '../../model/operations.ts'
import { inlineReferences } from '../../model/references.ts'
import { mapValues, type Schema, toJsonSchema } from '../../model/schema.ts'

const require = createRequire(import.meta.url)

/** A request of Dredd with the response that it must get: the parts that the suite reads or
 *  changes. */
export interface Transaction {
  id: string
  name: string
  host: string
  port: string
  fullPath: string
  fail?: string
  request: { method: string; body: string; headers: Record<string, string> }
  expected: {
    statusCode: string
    headers: Record<string, string>
    body?: string
    bodySchema?: string
  }
  /** Undefined until the response arrives. */
  real?: { headers: Record<string, string> }
}

/** A response that the contract declares, and for which Dredd has a transaction. */
export interface DeclaredResponse {
  operation: Operation
  response: OperationResponse
  mediaType: string | undefined
}

interface DreddFailure {
  /** The ID of the transaction. */
  id: string
  message: string
}

interface Statistics {
  tests: number
  failures: number
  errors: number
  passes: number
  skipped: number
}

type Expand = (template: string, parameters: Record<string, unknown>) => { uri: string | null }

/** Replaces Dredd's URI expansion, which does not find parameters such as `page%5Bnumber%5D` and
 *  then silently drops the operation. */
function mendBracketedNames(): void {
  const path = require.resolve('dredd-transactions/compile/compileURI/expandURItemplate')
  const original = require(path) as Expand
  const hide = (text: string): string =>
    text.replace(/%5B|\[/gi, '__LB__').replace(/%5D|\]/gi, '__RB__')
  const mended: Expand = (template, parameters) => {
    const hidden = Object.entries(parameters).map(([name, value]) => [hide(name), value])
    const result = original(hide(template), Object.fromEntries(hidden))
    if (result.uri) result.uri = result.uri.replaceAll('__LB__', '%5B').replaceAll('__RB__', '%5D')
    return result
  }
  const cached = require.cache[path]
  if (cached) cached.exports = mended
}

/** Dredd copies its configuration, and with it the parsed contract, for hooks that read it. The copy
 *  takes seconds, and the hooks of this suite do not read it. */
function skipCopyOfContract(): void {
  const path = require.resolve('clone', { paths: [require.resolve('dredd')] })
  require(path)
  const cached = require.cache[path]
  if (cached) cached.exports = (value: unknown) => value
}

/** Runs every transaction of the OpenAPI document against the URL `endpoint`. Before each
 *  transaction, `prepare` changes it so that its declared status occurs. `findProblem` returns why a
 *  response is wrong that Dredd accepts. `passed` has the IDs of transactions. */
export async function runDredd(
  endpoint: string,
  {
    document,
    prepare,
    findProblem,
  }: {
    document: object
    prepare(transaction: Transaction): Promise<void>
    findProblem(transaction: Transaction): string | undefined
  },
): Promise<{ statistics: Statistics; passed: string[]; failures: DreddFailure[] }> {
  mendBracketedNames()
  skipCopyOfContract()
  const Dredd = require('dredd') as new (
    configuration: object,
  ) => { run(done: (error: Error | null, statistics: Statistics) => void): void }
  // Dredd prints its reports at every log level; the listeners below collect the failures.
  require('dredd/build/reporters/reporterOutputLogger').default.transports.console.silent = true
  const emitter = new EventEmitter()
  const passed: string[] = []
  const failures: DreddFailure[] = []
  emitter.on('test pass', ({ title }: { title: string }) => passed.push(title))
  emitter.on('test fail', ({ title, message }: { title: string; message: string }) =>
    failures.push({ id: title, message }),
  )
  Object.assign(globalThis, {
    beforeDreddTransaction: prepare,
    afterDreddTransaction: findProblem,
  })
  const dredd = new Dredd({
    endpoint,
    apiDescriptions: [JSON.stringify(document)],
    hookfiles: [fileURLToPath(new URL('dredd-hooks.cjs', import.meta.url))],
    loglevel: 'silent',
    reporter: [],
    emitter,
    sorted: false,
  })
  const statistics = await new Promise<Statistics>((resolve, reject) => {
    dredd.run((error, result) => (error ? reject(error) : resolve(result)))
  })
  return { statistics, passed, failures }
}

/** The response that the transaction must get. The name of a transaction ends with
 *  `path > summary > status > media type`. Throws if the contract does not declare the response. */
export function declaredResponse(contract: Contract, { name }: Transaction): DeclaredResponse {
  const [path, summary, status, mediaType] = name.slice(name.indexOf('/')).split(' > ')
  const operation = contract.operations.find(
    (candidate) => candidate.path === path && candidate.summary === summary,
  )
  const response = operation?.responses.find((candidate) => String(candidate.status) === status)
  if (!operation || !response) throw new Error(`${name} is not a response of the contract`)
  return { operation, response, mediaType }
}

/** The number of transactions that the contract declares: one for each pair of media types. */
export function transactionCount({ operations }: Pick<Contract, 'operations'>): number {
  return operations
    .flatMap(({ responses, files }) =>
      responses.map(
        ({ content }) => Math.max(1, Object.keys(content).length) * Math.max(1, files.length),
      ),
    )
    .reduce((sum, count) => sum + count, 0)
}

/** Formats that Dredd's validator does not know. */
const UNKNOWN_FORMATS = ['int32', 'int64', 'float', 'double', 'byte', 'binary', 'password']

/** The media types that a 415 names in its header `Accept`, by method. The default is JSON only. */
const ACCEPTED_TYPES: Record<string, string> = {
  PATCH: 'application/json, application/merge-patch+json',
}

/** Makes Dredd expect a JSON body that matches the whole schema and has no undeclared properties,
 *  and the required headers only. */
export function expectSchema(
  contract: Contract,
  transaction: Transaction,
  { operation, response, mediaType }: DeclaredResponse,
): void {
  const acceptedTypes =
    operation.files.map((file) => file.mediaType).join(', ') ||
    (ACCEPTED_TYPES[transaction.request.method] ?? 'application/json')
  const schema = mediaType === undefined ? undefined : response.content[mediaType]?.schema
  delete transaction.expected.body
  if (schema && mediaType === 'application/json') {
    const whole = toJsonSchema(inlineReferences(contract.sources, schema))
    transaction.expected.bodySchema = JSON.stringify({
      $schema: 'http://json-schema.org/draft-07/schema#',
      ...toDreddSchema(whole),
    })
  }
  for (const name of Object.keys(transaction.expected.headers)) {
    if (response.headers[name.toLowerCase()]?.required === false)
      delete transaction.expected.headers[name]
    // Dredd compares the value of this header, but does not know the right value.
    if (name === 'Accept' && transaction.expected.headers[name] !== undefined)
      transaction.expected.headers[name] = acceptedTypes
  }
}

/** The schema for Dredd: forbids undeclared properties, and omits formats that Dredd does not
 *  know. */
function toDreddSchema(schema: Schema): Schema {
  const copy: Schema = { ...schema }
  delete copy.examples
  if (UNKNOWN_FORMATS.includes(String(copy.format))) delete copy.format
  if (copy.properties) {
    copy.properties = mapValues(copy.properties, toDreddSchema)
    copy.additionalProperties ??= false
  }
  if (copy.items) copy.items = toDreddSchema(copy.items)
  if (typeof copy.additionalProperties === 'object')
    copy.additionalProperties = toDreddSchema(copy.additionalProperties)
  for (const keyword of ['oneOf', 'anyOf', 'allOf'] as const)
    if (copy[keyword]) copy[keyword] = copy[keyword].map(toDreddSchema)
  return copy
}
