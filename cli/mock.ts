import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import type { Context } from 'koa'
import type { MockState } from '../scripts/mock/mock.ts'
import type { MockAttempt, MockWebhook } from '../scripts/mock/webhooks.ts'
import { type Contract, readGeneratedContract } from '../scripts/model/contract.ts'
import { assertGenerated } from '../scripts/model/source-hashes.ts'
import { newSecret } from '../webhooks/transport/secret.ts'
import type { LocalService } from './local-server.ts'
import {
  examples,
  parseHttpUrl,
  parsePort,
  parseSigningSecret,
  type Shell,
  UsageError,
} from './shell.ts'
import { ALLOW_STALE_OPTION, describeAllowStale } from './stale.ts'
import { nextStopSignal } from './stop-signals.ts'

interface MockOptions {
  port: number
  host: string
  stateful?: boolean
  webhook?: string
  secret?: string
  json?: boolean
  allowStale?: boolean
}

const DEFAULT_PORT = 4010
/** How long requests in flight may take after Ctrl-C. */
const GRACE_MS = 1_000
const ROOT = fileURLToPath(new URL('..', import.meta.url))

export function addCommand(program: Command, shell: Shell): void {
  program
    .command('mock')
    .description(
      'Run a mock of the API for the tests of API consumers. It checks requests like the service does ' +
        '(401, 404, 405, 415, 422 …) and responds with the examples of openapi.yaml. It accepts any ' +
        'API key, and allows requests from any web origin. Without --stateful, it stores nothing.',
    )
    .option('--port <port>', 'the port; 0 chooses a free one', parsePort, DEFAULT_PORT)
    .option(
      '--host <address>',
      'the IP address to listen on; 0.0.0.0 admits other machines and containers',
      '127.0.0.1',
    )
    .option(
      '--stateful',
      'keep the records that requests create, until the mock stops; an unknown ID gets 404',
    )
    .option(
      '--webhook <url>',
      'with --stateful: send each event of asyncapi.yaml to this URL, signed, with one attempt',
      parseHttpUrl,
    )
    .option(
      '--secret <secret>',
      'the signing secret of the webhook, or - to read it from standard input; default: a new one',
      parseSigningSecret,
    )
    .option(
      '--json',
      'print one JSON document {"url", "secret"} when the mock is ready, and nothing else',
    )
    .option(ALLOW_STALE_OPTION, describeAllowStale('start'))
    .addHelpText(
      'after',
      `${examples(
        'muster mock',
        'muster mock --stateful --webhook http://127.0.0.1:8080/hooks',
        'muster mock --port 0 --json',
      )}
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
  const { json = false } = options
  const webhook = readWebhook(options)
  const stopping = nextStopSignal()
  const print = json ? () => undefined : shell.print
  const server = await startMock(options, webhook, print)
  const { url } = server
  shell.print(json ? JSON.stringify({ url, secret: webhook?.secret }) : formatReady(url, webhook))
  print(`\n  curl ${url}/public/v1/participants -H 'Authorization: Bearer any'\n`)
  await stopping
  await server.stop(GRACE_MS)
}

function readWebhook({ stateful, webhook, secret }: MockOptions): MockWebhook | undefined {
  if (webhook === undefined) {
    if (secret !== undefined)
      throw new UsageError("option '--secret <secret>' needs option '--webhook <url>'")
    return undefined
  }
  if (!stateful) throw new UsageError("option '--webhook <url>' needs option '--stateful'")
  return { url: webhook, secret: secret ?? newSecret() }
}

/** The mock follows generated/, not the contracts. */
async function startMock(
  { port, host, stateful, allowStale = false }: MockOptions,
  webhook: MockWebhook | undefined,
  print: (line: string) => void,
): Promise<LocalService> {
  if (!allowStale) await assertGenerated(ROOT)
  const [{ createMock }, { listenLocally }, { newLogger }, { serviceParts }] = await Promise.all([
    import('../scripts/mock/mock.ts'),
    import('./local-server.ts'),
    import('../server/log.ts'),
    import('../server/service-parts.ts'),
  ])
  const contract = readGeneratedContract(ROOT)
  const app = await createMock({
    service: serviceParts,
    log: newLogger('error'),
    contract,
    onResponse: (ctx) => print(formatResponse(ctx)),
    state: stateful ? await newState(contract, webhook, print) : undefined,
  })
  return await listenLocally(app.callback(), { host, port })
}

async function newState(
  contract: Contract,
  webhook: MockWebhook | undefined,
  print: (line: string) => void,
): Promise<MockState> {
  if (webhook === undefined) return {}
  const { deliverEvents } = await import('../scripts/mock/webhooks.ts')
  return {
    async onChange(operation, change, request) {
      const traceparent = request.get('traceparent')
      const source = { operation, change, traceparent }
      for (const attempt of await deliverEvents(contract, webhook, source))
        print(formatAttempt(webhook, attempt))
    },
  }
}

function formatAttempt({ url }: MockWebhook, { event, status }: MockAttempt): string {
  return `${status ?? '---'}  POST ${url}  ${event}`
}

function formatReady(url: string, webhook: MockWebhook | undefined): string {
  const secret = webhook ? `\n\nThe signing secret of the webhook is ${webhook.secret}` : ''
  return `The mock listens at ${url} (press Ctrl-C to stop).${secret}`
}

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
