/** Runs the service or the mock of an OpenAPI document. */
import type { Context } from 'koa'
import type { Contract } from '../scripts/model/contract.ts'
import { readGeneratedDocument } from '../scripts/model/document.ts'
import { respondWithExample } from '../scripts/service/examples.ts'
import { loadHandlers } from '../scripts/service/handlers.ts'
import { readAnyContract } from '../scripts/service/read.ts'
import { createService, type ServiceOptions } from '../scripts/service/service.ts'
import { type HttpServer, urlOf } from '../server/http.ts'
import { docsRoutes } from '../web/docs/routes.ts'
import { listenLocally } from './local-server.ts'

interface Listening {
  host: string
  port: number
  /** The URL at which clients reach the service. Default: that of the host and port. */
  baseUrl?: string
  onResponse?(ctx: Context): void
}

export interface LocalService extends HttpServer {
  url: string
}

/** Serves the handlers of the folder, and the documentation at /docs/. */
export async function startHandlers(root: string, listening: Listening): Promise<LocalService> {
  const handle = await loadHandlers(root)
  const docs = docsRoutes({
    baseUrl: listening.baseUrl ?? urlOf(listening.host, listening.port),
    root,
  })
  const extend: ServiceOptions['extend'] = (app) => app.use(docs.routes())
  return await start({ contract: readGeneratedDocument(root), handle, extend }, listening)
}

/** Responds with examples, or as `newHandler` says. Needs no generated code. */
export async function startMock(
  root: string,
  listening: Listening,
  newHandler: (contract: Contract) => ServiceOptions['handle'] = () => respondWithExample,
): Promise<LocalService> {
  const contract = await readAnyContract(root)
  return await start({ contract, handle: newHandler(contract) }, listening)
}

async function start(options: ServiceOptions, listening: Listening): Promise<LocalService> {
  const { host, port, onResponse } = listening
  const app = createService({ ...options, onResponse, onError: printError })
  const server = await listenLocally(app.callback(), { host, port })
  return { ...server, url: urlOf(host, server.port) }
}

function printError(error: unknown): void {
  console.error(error instanceof Error ? error.message : error)
}
