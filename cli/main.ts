import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { validate as isUuid } from 'uuid'
import { Refused } from '../errors.ts'
import { type Environment, newShell, type Shell, UsageError } from './shell.ts'

interface Entry {
  summary: string
  load(): Promise<(program: Command, shell: Shell) => void>
}

/** In the order of the help. Commands are loaded on demand: the server's modules load slowly. */
const COMMANDS: Record<string, Entry> = {
  serve: { summary: 'run the service', load: async () => (await import('./serve.ts')).addServe },
  dev: {
    summary: 'run the service and restart it after each change',
    load: async () => (await import('./dev.ts')).addDev,
  },
  migrate: {
    summary: 'run the pending database migrations',
    load: async () => (await import('./migrate.ts')).addMigrate,
  },
  backup: {
    summary: 'copy the SQLite database into a new file',
    load: async () => (await import('./backup.ts')).addBackup,
  },
  copy: {
    summary: 'copy the embedded database to PostgreSQL',
    load: async () => (await import('./copy.ts')).addCopy,
  },
  init: {
    summary: 'make a service from an OpenAPI document',
    load: async () => (await import('./init.ts')).addInit,
  },
  generate: {
    summary: 'generate code from the contracts',
    load: async () => (await import('./generate.ts')).addGenerate,
  },
  rename: {
    summary: 'rename an operation or a field everywhere',
    load: async () => (await import('./rename.ts')).addRename,
  },
  lint: {
    summary: 'check the contracts',
    load: async () => (await import('./lint.ts')).addLint,
  },
  docs: {
    summary: 'write the documentation as static files',
    load: async () => (await import('./docs.ts')).addDocs,
  },
  diff: {
    summary: 'compare the contracts with an earlier version',
    load: async () => (await import('./diff.ts')).addDiff,
  },
  contract: {
    summary: 'test a service against the contract',
    load: async () => (await import('./contract.ts')).addContract,
  },
  account: {
    summary: 'create, list, suspend, resume and delete accounts',
    load: async () => (await import('./account.ts')).addAccount,
  },
  user: {
    summary: 'create, list and deactivate users',
    load: async () => (await import('./user.ts')).addUser,
  },
  key: {
    summary: 'create, list and revoke API keys',
    load: async () => (await import('./key.ts')).addKey,
  },
  webhook: {
    summary: 'create, list, update, enable, disable, test, rotate and delete webhooks',
    load: async () => (await import('./webhook.ts')).addWebhook,
  },
  deliveries: {
    summary: 'list, retry, cancel and pause deliveries',
    load: async () => (await import('./deliveries.ts')).addDeliveries,
  },
  bulk: {
    summary: 'show, pause, resume and cancel bulk jobs',
    load: async () => (await import('./bulk.ts')).addBulk,
  },
  'secret-key': {
    summary: 'rotate the key that encrypts the signing secrets',
    load: async () => (await import('./secret-key.ts')).addSecretKey,
  },
  doctor: {
    summary: 'check the installation, and say what to do',
    load: async () => (await import('./doctor.ts')).addDoctor,
  },
  mock: {
    summary: 'run a mock of the API',
    load: async () => (await import('./mock.ts')).addMock,
  },
  listen: {
    summary: 'run a receiver that verifies and prints deliveries',
    load: async () => (await import('./listen.ts')).addListen,
  },
  'check-receiver': {
    summary: 'check a webhook receiver',
    load: async () => (await import('./check-receiver.ts')).addCheckReceiver,
  },
}

const OK = 0
const REFUSED = 1
const WRONG_USAGE = 2

/** Runs one command. Returns the exit status: 0 for success, 1 for an error, 2 for wrong usage. */
export async function main(args: string[], environment: Environment): Promise<number> {
  const shell = newShell(environment)
  exitWhenOutputCloses()
  try {
    const program = await newProgram(shell, args)
    await program.parseAsync(args.map(normalizeId), { from: 'user' })
    return shell.exitStatus
  } catch (error) {
    return await reportError(error, environment)
  }
}

/** Converts IDs to lower case, as they are stored. Other arguments stay the same. */
function normalizeId(arg: string): string {
  return isUuid(arg) ? arg.toLowerCase() : arg
}

async function newProgram(shell: Shell, args: string[]): Promise<Command> {
  const { version } = JSON.parse(
    readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
  ) as { version: string }
  const program = new Command('muster')
    .description(
      'Participants, tasks, jobs, applications, exports and payments behind a JSON API with signed webhooks.',
    )
    .version(version)
    .exitOverride()
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .showHelpAfterError('Add --help to see the usage.')
    .addHelpText(
      'after',
      `
With --json, every command prints one JSON document and nothing else.
Exit status: 0 for success, 1 for an error (the message is on standard error), 2 for wrong usage.
Settings are environment variables. DATA_DIR is the folder of the embedded database (./data by default).
DATABASE_URL selects a PostgreSQL database instead.

Start with:
  $ muster serve
`,
    )
  for (const [name, { summary, load }] of Object.entries(COMMANDS)) {
    // The help needs only the name and the summary of the other commands.
    if (args.includes(name)) (await load())(program, shell)
    else program.command(name)
    program.commands.at(-1)?.summary(summary)
  }
  for (const command of listLeafCommands(program))
    if (!command.options.some(({ long }) => long === '--json'))
      command.option('--json', 'print one JSON document and nothing else')
  return program
}

function listLeafCommands(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(listLeafCommands)
}

/** Prints the error on standard error and returns the exit status. */
async function reportError(error: unknown, environment: Environment): Promise<number> {
  // commander has already printed the error, or the help.
  if (error instanceof CommanderError) return error.exitCode === 0 ? OK : WRONG_USAGE
  if (error instanceof UsageError) {
    console.error(`error: ${error.message}`)
    return WRONG_USAGE
  }
  console.error(await describeError(error, environment))
  return REFUSED
}

/** A sentence for the user. An unexpected error is printed with its stack. */
async function describeError(error: unknown, environment: Environment): Promise<unknown> {
  if (error instanceof Refused) return error.message
  const { describeDatabaseError } = await import('./database-errors.ts')
  return describeDatabaseError(error, environment) ?? error
}

/** `muster … | head` closes our standard output early, which is not an error. */
function exitWhenOutputCloses(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(OK)
    throw error
  })
}
