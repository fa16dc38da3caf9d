import type { Command } from 'commander'
import type { Context } from 'koa'
import { parseDocumentRoot, ROOT_OPTION } from './root.ts'
import { examples, parsePort, type Shell } from './shell.ts'
import { nextStopSignal } from './stop-signals.ts'

interface MockOptions {
  port: number
  host: string
  root?: string
  json?: boolean
}

const DEFAULT_PORT = 4010
const GRACE_MS = 1_000

export function addMock(program: Command, shell: Shell): void {
  program
    .command('mock')
    .description(
      'Run a mock of the API for the tests of API consumers. It checks requests like the service does ' +
        '(401, 404, 405, 415, 422 …) and responds with the examples of openapi.yaml. It stores nothing, ' +
        'accepts any API key, and allows requests from any web origin.',
    )
    .option('--port <port>', 'the port; 0 chooses a free one', parsePort, DEFAULT_PORT)
    .option(
      '--host <address>',
      'the IP address to listen on; 0.0.0.0 admits other machines and containers',
      '127.0.0.1',
    )
    .option(ROOT_OPTION, 'the folder of an OpenAPI document of another API', parseDocumentRoot)
    .option('--json', 'print one JSON document {"url"} when the mock is ready, and nothing else')
    .addHelpText(
      'after',
      `${examples('muster mock', 'muster mock --port 0 --json')}
The headers of a request choose the response:
  $ curl http://127.0.0.1:${DEFAULT_PORT}/public/v1/tasks -H 'Authorization: Bearer any' -H 'Prefer: code=429'

Prefer: code=404          a documented status of the operation
Prefer: example=name      a named example of the response
Accept: application/json  a media type of the response

Ctrl-C stops the mock.
`,
    )
    .action(shell.action((options: MockOptions) => mock(shell, options)))
}

async function mock(shell: Shell, options: MockOptions): Promise<undefined> {
  const { port, host, root, json = false } = options
  if (root !== undefined) return await mockDocument(shell, root, options)
  const [{ createMock }, { listenLocally }, { newLogger }, { serviceParts }] = await Promise.all([
    import('../scripts/mock/mock.ts'),
    import('./local-server.ts'),
    import('../server/log.ts'),
    import('../server/service-parts.ts'),
  ])
  const stopping = nextStopSignal()
  const app = await createMock({
    service: serviceParts,
    log: newLogger('error'),
    onResponse: json ? undefined : (ctx) => shell.print(formatResponse(ctx)),
  })
  const server = await listenLocally(app.callback(), { host, port })
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${server.port}`
  shell.print(json ? JSON.stringify({ url }) : formatListening(url))
  await stopping
  await server.stop(GRACE_MS)
}

async function mockDocument(
  shell: Shell,
  root: string,
  { port, host, json = false }: MockOptions,
): Promise<undefined> {
  const { startMock } = await import('./document-service.ts')
  const stopping = nextStopSignal()
  const onResponse = ({ method, url, status }: Context) =>
    shell.print(`${status}  ${method} ${url}`)
  const server = await startMock(root, { host, port, onResponse: json ? undefined : onResponse })
  const { url } = server
  shell.print(json ? JSON.stringify({ url }) : `The mock listens at ${url} (press Ctrl-C to stop).`)
  await stopping
  await server.stop(GRACE_MS)
}

function formatListening(url: string): string {
  return `The mock listens at ${url} (press Ctrl-C to stop).

  curl ${url}/public/v1/participants -H 'Authorization: Bearer any'
`
}

/** One line for the response, and one for each fault of the request. */
function formatResponse({ method, url, status, state, body }: Context): string {
  const line = `${status}  ${method} ${url}  ${state.operationId ?? ''}`.trimEnd()
  if (status < 400 || typeof body !== 'string') return line
  const { message, errors = {} } = JSON.parse(body) as {
    message: string
    errors?: Record<string, string[]>
  }
  const problems = Object.entries(errors).map(
    ([field, sentences]) => `${field} ${sentences.join(' ')}`,
  )
  return [
    line,
    ...(problems.length === 0 ? [message] : problems).map((problem) => `     ${problem}`),
  ].join('\n')
}
