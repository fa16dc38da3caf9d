#!/usr/bin/env node
/** The command line of the package @muster/tools, for API consumers: without a service of its own and
 *  without a database. */
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { type Commands, runProgram } from '../program.ts'
import { describeApiError } from '../session.ts'

const COMMANDS: Commands = {
  mock: ['run a mock of the API', () => import('../mock.ts')],
  listen: ['receive deliveries, or the events of a service', () => import('../listen.ts')],
  'check-receiver': ['check a webhook receiver', () => import('../check-receiver.ts')],
  trigger: ['cause an event with a test record', () => import('./trigger.ts')],
  events: ['list, show and resend events', () => import('./events.ts')],
  deliveries: ['list and retry deliveries', () => import('./deliveries.ts')],
  webhooks: ['list, create, test and delete webhooks', () => import('./webhooks.ts')],
  contract: ['test a service against the contract', () => import('../contract.ts')],
  diff: ['compare the contracts of two versions', () => import('../diff.ts')],
  docs: ['write the documentation as static files', () => import('../docs.ts')],
  completion: ['print a script that completes commands', () => import('../completion.ts')],
}

/** Options for those who change Muster. */
const HIDDEN = ['--allow-stale', '--changed', '--changelog', '--release']
/** Options that replace the service or the settings of an installation. */
const REQUIRED: Record<string, string[]> = {
  contract: ['--url', '--key'],
  docs: ['--server-url'],
}

function adapt(program: Command): void {
  for (const command of program.commands)
    for (const option of command.options) {
      option.hidden = HIDDEN.includes(option.long ?? '')
      option.mandatory ||= (REQUIRED[command.name()] ?? []).includes(option.long ?? '')
    }
}

const { version } = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
) as { version: string }

process.exitCode = await runProgram(
  {
    description: 'Tools for programs that use the Muster API and its webhooks.',
    version,
    commands: COMMANDS,
    help: `
With --json, a command prints only JSON.
Exit status: 0 for success, 1 for an error (the message is on standard error), 2 for wrong usage.
Commands that call a service read two environment variables: MUSTER_URL, for example https://api.example.com, and
MUSTER_API_KEY, an API key.

Start with:
  $ muster mock --stateful
`,
    adapt,
    describeError: async (error) => describeApiError(error),
  },
  process.argv.slice(2),
  process.env,
)
// Exits even if handles are still open, for example idle connections.
setTimeout(() => process.exit(), 500).unref()
