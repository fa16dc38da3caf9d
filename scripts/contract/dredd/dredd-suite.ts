/** Runs Dredd. Each transaction is a request and the declared response that it must get. Before
 *  each transaction, `prepare` creates new records and makes its status occur. */
import type { Contract } from '../../model/contract.ts'
import { exampleFile } from '../file-request.ts'
import { findHeaderProblem } from '../header-meanings.ts'
import { HttpClient } from '../http-client.ts'
import { type Request, toSearch } from '../request.ts'
import { prepareRecords } from '../test-records.ts'
import {
  type DeclaredResponse,
  declaredResponse,
  expectSchema,
  runDredd,
  type Transaction,
  transactionCount,
} from './dredd.ts'
import { provokeStatus, type Servers } from './provoke-status.ts'

export interface DreddResult {
  /** Each begins with the operationId. */
  failures: string[]
  /** The declared responses that occurred as declared. */
  passed: { operation: string; status: number; headers: string[] }[]
}

/** Sends every transaction that the contract declares for the operations `ids`, and checks the
 *  whole response. Calls `onTransaction` before each. */
export async function runDreddSuite(
  contract: Contract,
  servers: Servers,
  ids: readonly string[],
  onTransaction?: (operation: string) => void,
): Promise<DreddResult> {
  const client = new HttpClient(servers.app.url, [])
  const declared = new Map<string, DeclaredResponse & { startedAt: number }>()
  const {
    statistics,
    passed,
    failures: failed,
  } = await runDredd(servers.app.url, {
    document: withOperations(contract, ids),
    async prepare(transaction) {
      const response = declaredResponse(contract, transaction)
      onTransaction?.(response.operation.id)
      declared.set(transaction.id, { ...response, startedAt: performance.now() })
      await prepare({ contract, servers, client }, transaction, response)
    },
    findProblem({ id, real }) {
      const { response, startedAt = 0 } = declared.get(id) ?? {}
      if (!response || !real) return undefined
      const durationMs = performance.now() - startedAt
      return findHeaderProblem(response, { headers: new Headers(real.headers), durationMs })
    },
  }).finally(() => client.close())
  const failures = failed.map(
    ({ id, message }) => `${declared.get(id)?.operation.id}: ${id}: ${message}`,
  )
  // Dredd silently drops transactions that it does not understand.
  const tested = contract.operations.filter(({ id }) => ids.includes(id))
  const expected = transactionCount({ operations: tested })
  const ran = statistics.passes + failures.length
  if (ran !== expected)
    failures.push(`Dredd ran ${ran} transactions, but the contract declares ${expected}`)
  return {
    failures,
    passed: passed.flatMap((id) => {
      const found = declared.get(id)
      if (found === undefined) return []
      const { operation, response } = found
      const headers = Object.values(response.headers).filter(({ required }) => required)
      const names = headers.map(({ name }) => name)
      return [{ operation: operation.id, status: response.status, headers: names }]
    }),
  }
}

/** openapi.yaml with these operations only: Dredd takes seconds to read the whole document. */
function withOperations({ openapi, operations }: Contract, ids: readonly string[]): object {
  const document = structuredClone(openapi.root) as { paths: Record<string, object> }
  for (const { id, path, method } of operations)
    if (!ids.includes(id)) Reflect.deleteProperty(document.paths[path] ?? {}, method)
  return document
}

async function prepare(
  { contract, servers, client }: { contract: Contract; servers: Servers; client: HttpClient },
  transaction: Transaction,
  declared: DeclaredResponse,
): Promise<void> {
  expectSchema(contract, transaction, declared)
  const { operation } = declared
  const account = await servers.app.newAccount()
  const send = (request: Request) => client.exchange(request)
  const records = await prepareRecords(contract, send, account.key)
  // Dredd sends each header parameter with an empty value.
  for (const parameter of operation.parameters)
    if (parameter.in === 'header') delete transaction.request.headers[parameter.name]
  transaction.request.headers.Authorization = `Bearer ${account.key}`
  const file = exampleFile(operation)
  const [, query = ''] = /(\?.*)?$/.exec(transaction.fullPath) ?? []
  const search = file ? `?${toSearch(Object.entries(file.query))}` : query
  transaction.fullPath = (await records.newPath(operation)) + search
  if (file) {
    transaction.request.headers['Content-Type'] = file.mediaType
    transaction.request.body = file.text
  }
  if (operation.body) {
    const example = JSON.parse(transaction.request.body)
    transaction.request.headers['Content-Type'] = 'application/json'
    transaction.request.body = JSON.stringify(await records.withReferences(operation, example))
  }
  await provokeStatus(servers, transaction, declared, account)
}
