import type { Command } from 'commander'
import type { Context } from 'koa'
import { Refused } from '../errors.ts'
import { examples, parsePort, type Shell } from './shell.ts'

interface MockOptions {
  port: number
  host: string
  json?: boolean
}

const DEFAULT_PORT = 4010
const GRACE_MS = 1_000

export function addMock(program: Command, shell: Shell): void {
  program
    .command('mock')
    .description(
      'Answer the whole API from the examples of openapi.yaml, for the tests of those who call it. Requests are held to the contract as the service does it (401, 404, 405, 415, 422 …); nothing is remembered, and any key will do. Browsers of any origin may call it.',
    )
    .option('--port <port>', 'where to listen; 0 lets the system choose', parsePort, DEFAULT_PORT)
    .option(
      '--host <address>',
      'the address to listen on; 0.0.0.0 for other machines and containers',
      '127.0.0.1',
    )
    .option('--json', 'print one JSON document {"url"} when it is ready, and nothing else')
    .addHelpText(
      'after',
      `${examples('muster mock', 'muster mock --port 0 --json')}
A request chooses another response than the first with a header:
  $ curl http://127.0.0.1:${DEFAULT_PORT}/public/v1/tasks -H 'Authorization: Bearer any' -H 'Prefer: code=429'

Prefer: code=404          any documented status of the operation
Prefer: example=name      one of several named examples of a response
Accept: application/json  one of several media types of a response
`,
    )
    .action(shell.action((options: MockOptions) => mock(shell, options)))
}

async function mock(shell: Shell, { port, host, json = false }: MockOptions): Promise<undefined> {
  const [{ createMock }, { listen }, { newLogger }] = await Promise.all([
    import('../scripts/mock/mock.ts'),
    import('../server/http.ts'),
    import('../server/log.ts'),
  ])
  const stopping = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve())
  })
  const app = await createMock({
    log: newLogger('error'),
    onAnswer: json ? undefined : (ctx) => shell.print(sayAnswer(ctx)),
  })
  const server = await listen(app.callback(), { host, port }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE')
        throw new Refused(`Port ${port} of ${host} is in use: choose another with --port`, {
          cause: error,
        })
      if (error.syscall === 'listen' || error.syscall === 'getaddrinfo')
        throw new Refused(`${host} cannot be listened on: ${error.message}`, { cause: error })
      throw error
    },
  )
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${server.port}`
  shell.print(json ? JSON.stringify({ url }) : sayListening(url))
  await stopping
  await server.stop(GRACE_MS)
}

function sayListening(url: string): string {
  return `The mock answers at ${url} (Ctrl-C ends).

  curl ${url}/public/v1/participants -H 'Authorization: Bearer any'
`
}

/** One line, and one for each thing that is wrong with the request. */
function sayAnswer({ method, url, status, state, body }: Context): string {
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
