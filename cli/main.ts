import { readFileSync } from 'node:fs'
import { type Commands, type ProgramDefinition, runProgram } from './program.ts'
import { type Environment, UsageError } from './shell.ts'

const COMMANDS: Commands = {
  serve: ['run the service', () => import('./serve.ts')],
  dev: ['run the service and restart it after each change', () => import('./dev.ts')],
  migrate: ['run the pending database migrations', () => import('./migrate.ts')],
  backup: ['copy the SQLite database into a new file', () => import('./backup.ts')],
  copy: ['copy the embedded database to PostgreSQL', () => import('./copy.ts')],
  generate: ['generate code from the contracts', () => import('./generate.ts')],
  lint: ['check the contracts', () => import('./lint.ts')],
  docs: ['write the documentation as static files', () => import('./docs.ts')],
  diff: ['compare the contracts with an earlier version', () => import('./diff.ts')],
  contract: ['test a service against the contract', () => import('./contract.ts')],
  account: [
    'create, list, suspend, resume and delete accounts, and set their quotas',
    () => import('./account.ts'),
  ],
  user: ['create, list, update and deactivate users', () => import('./user.ts')],
  key: ['create, list and revoke API keys', () => import('./key.ts')],
  webhook: [
    'create, list, update, enable, disable, test, rotate and delete webhooks',
    () => import('./webhook.ts'),
  ],
  deliveries: ['list, retry, cancel and pause deliveries', () => import('./deliveries.ts')],
  bulk: ['list, pause, resume and cancel bulk jobs', () => import('./bulk.ts')],
  'secret-key': [
    'rotate or reset the key that encrypts the signing secrets',
    () => import('./secret-key.ts'),
  ],
  doctor: ['check the installation', () => import('./doctor.ts')],
  mock: ['run a mock of the API', () => import('./mock.ts')],
  listen: ['run a receiver that verifies and prints deliveries', () => import('./listen.ts')],
  'check-receiver': ['check a webhook receiver', () => import('./check-receiver.ts')],
  completion: ['print a script that completes commands', () => import('./completion.ts')],
}

const { version } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as { version: string }

export const PROGRAM: ProgramDefinition = {
  description:
    'Participants, tasks, jobs, applications, exports and payments behind a JSON API with signed webhooks.',
  version,
  commands: COMMANDS,
  help: `
With --json, a command prints only JSON.
Exit status: 0 for success, 1 for an error (the message is on standard error), 2 for wrong usage.
Settings are environment variables. DATA_DIR is the folder of the embedded database (./data by default).
DATABASE_URL selects a PostgreSQL database instead. --config reads them from a file of lines NAME=value, such as the
EnvironmentFile of a systemd unit.
Only serve, dev, migrate and account create create a database or run migrations. copy does so in its target.

Start with:
  $ muster serve
`,
  adapt(program) {
    program
      .option('--config <file>', 'read settings from a file; environment variables override them')
      // bin/muster.js reads the file before Node.js starts the command, and removes the option.
      .on('option:config', () => {
        throw new UsageError("option '--config <file>' needs the name of a file")
      })
  },
  async describeError(error, environment) {
    const { describeDatabaseError } = await import('./database-errors.ts')
    return describeDatabaseError(error, environment)
  },
}

/** Runs one command. Returns the exit status: 0 for success, 1 for an error, 2 for wrong usage. */
export const main = (args: string[], environment: Environment): Promise<number> =>
  runProgram(PROGRAM, args, environment)
