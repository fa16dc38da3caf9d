import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { validate as isUuid } from 'uuid'
import { Refused } from '../errors.ts'
import { newShell, type Shell, WrongUsage } from './shell.ts'

interface Entry {
  summary: string
  load(): Promise<(program: Command, shell: Shell) => void>
}

/** In the order of the help. Each command is loaded when it is asked for: most need not wait for a server's modules. */
const COMMANDS: Record<string, Entry> = {
  serve: { summary: 'run the service', load: async () => (await import('./serve.ts')).addServe },
  dev: {
    summary: 'run the service, and again at each change',
    load: async () => (await import('./dev.ts')).addDev,
  },
  migrate: {
    summary: 'bring the tables up to date',
    load: async () => (await import('./migrate.ts')).addMigrate,
  },
  backup: {
    summary: 'copy the records into a new file, beside a running server',
    load: async () => (await import('./backup.ts')).addBackup,
  },
  generate: {
    summary: 'write generated/ from the contracts',
    load: async () => (await import('./generate.ts')).addGenerate,
  },
  lint: {
    summary: 'look for mistakes in the contracts',
    load: async () => (await import('./lint.ts')).addLint,
  },
  docs: {
    summary: 'write the documentation as files',
    load: async () => (await import('./docs.ts')).addDocs,
  },
  diff: {
    summary: 'see what a change of the contracts breaks',
    load: async () => (await import('./diff.ts')).addDiff,
  },
  contract: {
    summary: 'test a service against the contract',
    load: async () => (await import('./contract.ts')).addContract,
  },
  account: {
    summary: 'make accounts',
    load: async () => (await import('./account.ts')).addAccount,
  },
  user: {
    summary: 'make users of an account',
    load: async () => (await import('./user.ts')).addUser,
  },
  key: {
    summary: 'make, list and revoke API keys',
    load: async () => (await import('./key.ts')).addKey,
  },
  webhook: {
    summary: 'make, list, switch and re-key webhooks',
    load: async () => (await import('./webhook.ts')).addWebhook,
  },
  deliveries: {
    summary: 'see what was delivered, and try again',
    load: async () => (await import('./deliveries.ts')).addDeliveries,
  },
  bulk: {
    summary: 'see, pause and end work at many deliveries',
    load: async () => (await import('./bulk.ts')).addBulk,
  },
  mock: {
    summary: 'answer the API from its examples, for tests',
    load: async () => (await import('./mock.ts')).addMock,
  },
  listen: {
    summary: 'receive, verify and show webhook deliveries',
    load: async () => (await import('./listen.ts')).addListen,
  },
  'check-receiver': {
    summary: 'see whether a receiver answers as it must',
    load: async () => (await import('./check-receiver.ts')).addCheckReceiver,
  },
}

const OK = 0
const REFUSED = 1
const WRONG_USAGE = 2

/** Runs one command and returns its exit status: 0, 1 for a refusal said on standard error, 2 for wrong usage. */
export async function main(
  args: string[],
  environment: Record<string, string | undefined>,
): Promise<number> {
  const shell = newShell(environment)
  endQuietlyWithReader()
  try {
    const program = await newProgram(shell, args)
    await program.parseAsync(args.map(storedId), { from: 'user' })
    return shell.exitStatus
  } catch (error) {
    return await reportError(error)
  }
}

/** An id as it is stored: in lower case. What is no id stays as it is. */
function storedId(arg: string): string {
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
    .showHelpAfterError('Add --help to see how it is used.')
    .addHelpText(
      'after',
      `
Every command takes --json and then prints one JSON document and nothing else.
Exit status: 0, or 1 for a refusal (said on standard error), or 2 for wrong usage.
Settings are environment variables: DATA_DIR says where the records are (./data), DATABASE_URL puts them in PostgreSQL.

Begin with:
  $ muster serve
`,
    )
  for (const [name, { summary, load }] of Object.entries(COMMANDS)) {
    // Of one that is not asked for, the list of commands needs no more than this.
    if (args.includes(name)) (await load())(program, shell)
    else program.command(name)
    program.commands.at(-1)?.summary(summary)
  }
  for (const command of leavesOf(program))
    if (!command.options.some(({ long }) => long === '--json'))
      command.option('--json', 'print one JSON document and nothing else')
  return program
}

function leavesOf(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf)
}

/** Prints the error on standard error and returns the exit status. */
async function reportError(error: unknown): Promise<number> {
  // commander has already printed the error, or the help.
  if (error instanceof CommanderError) return error.exitCode === 0 ? OK : WRONG_USAGE
  if (error instanceof WrongUsage) {
    console.error(`error: ${error.message}`)
    return WRONG_USAGE
  }
  console.error(await describeError(error))
  return REFUSED
}

/** A sentence for the user. An unexpected error is printed with its stack. */
async function describeError(error: unknown): Promise<unknown> {
  if (error instanceof Refused) return error.message
  const { errorCode, isUnavailable } = await import('../records/database/errors.ts')
  if (!isUnavailable(error)) return error
  // An error for a name with several IP addresses has a code and no message.
  return `The database cannot be reached or is overloaded: ${(error as Error).message || errorCode(error)}`
}

/** `muster … | head` closes our standard output early: no reason to complain. */
function endQuietlyWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(OK)
    throw error
  })
}
