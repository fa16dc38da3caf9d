/** Runs the service or the mock of an OpenAPI document. */
import type { Context } from 'koa'
import type { Contract } from '../scripts/model/contract.ts'
import { assertDocumentGenerated, readGeneratedDocument } from '../scripts/model/document.ts'
import { respondWithExample } from '../scripts/service/examples.ts'
import { loadHandlers } from '../scripts/service/handlers.ts'
import { readAnyContract } from '../scripts/service/read.ts'
import { createService, type ServiceOptions } from '../scripts/service/service.ts'
import { urlOf } from '../server/http.ts'
import { docsRoutes } from '../web/docs/routes.ts'
import { type LocalService, listenLocally } from './local-server.ts'

interface LocalOptions {
  host: string
  port: number
  /** The document, if the caller has read it already. */
  contract?: Contract
}

interface HandlersOptions extends LocalOptions {
  /** The URL at which clients reach the service. Default: the URL of the host and port. */
  baseUrl?: string
  /** Starts even if the document was changed after generated/ was written. */
  allowStale?: boolean
}

interface MockOptions extends LocalOptions {
  onResponse?(ctx: Context): void
}

/** Serves the handlers in the folder `root`, and the documentation at /docs/. */
export async function startHandlers(root: string, options: HandlersOptions): Promise<LocalService> {
  const { host, port, baseUrl = urlOf(host, port), allowStale = false } = options
  if (!allowStale)
    await assertDocumentGenerated(root, options.contract ?? (await readAnyContract(root)))
  const docs = docsRoutes({ baseUrl, root })
  const app = createService({
    contract: readGeneratedDocument(root),
    handle: await loadHandlers(root),
    extend: (service) => service.use(docs.routes()),
    onError: printError,
  })
  return await listenLocally(app.callback(), { host, port, portName: 'PORT' })
}

/** By default, responds with examples. Needs no generated code. */
export async function startMock(
  root: string,
  { host, port, onResponse, contract: loaded }: MockOptions,
  newHandler: (contract: Contract) => ServiceOptions['handle'] = () => respondWithExample,
): Promise<LocalService> {
  const contract = loaded ?? (await readAnyContract(root))
  const app = createService({
    contract,
    handle: newHandler(contract),
    onResponse,
    onError: printError,
  })
  return await listenLocally(app.callback(), { host, port })
}

function printError(error: unknown): void {
  console.error(error instanceof Error ? error.message : error)
}
