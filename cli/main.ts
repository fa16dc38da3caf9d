import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { validate as isUuid } from 'uuid'
import { Refused } from '../errors.ts'
import { type Environment, newShell, type Shell, UsageError } from './shell.ts'

interface CommandModule {
  addCommand(program: Command, shell: Shell): void
}

/** In the order of the help. Commands are loaded on demand: the server's modules load slowly. */
const COMMANDS: Record<string, [summary: string, load: () => Promise<CommandModule>]> = {
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
}

const OK = 0
const REFUSED = 1
const WRONG_USAGE = 2
const USAGE_HINT = 'Add --help to see the usage.'

/** Runs one command. Returns the exit status: 0 for success, 1 for an error, 2 for wrong usage. */
export async function main(args: string[], environment: Environment): Promise<number> {
  const shell = newShell(environment)
  exitWhenOutputCloses()
  try {
    const program = await newProgram(shell, args)
    await program.parseAsync(moveHelp(args.map(normalizeId)), { from: 'user' })
    return shell.exitStatus
  } catch (error) {
    return await reportError(error, environment)
  }
}

/** The command `help` of commander takes one word. So `help key create` becomes
 *  `key help create`. */
function moveHelp(args: string[]): string[] {
  const [first, ...words] = args
  return first === 'help' && words.length > 1
    ? [...words.slice(0, -1), first, ...words.slice(-1)]
    : args
}

/** Converts IDs to lower case, as they are stored. Other arguments stay the same. */
function normalizeId(arg: string): string {
  return isUuid(arg) ? arg.toLowerCase() : arg
}

export async function newProgram(shell: Shell, args: string[]): Promise<Command> {
  const { version } = JSON.parse(
    readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
  ) as { version: string }
  const program = new Command('muster')
    .description(
      'Participants, tasks, jobs, applications, exports and payments behind a JSON API with signed webhooks.',
    )
    .version(version)
    .option('--config <file>', 'read settings from a file; environment variables override them')
    // bin/muster.js reads the file before Node.js starts the command, and removes the option.
    .on('option:config', () => {
      throw new UsageError("option '--config <file>' needs the name of a file")
    })
    .exitOverride()
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .showHelpAfterError(USAGE_HINT)
    .addHelpText(
      'after',
      `
With --json, a command prints only JSON.
Exit status: 0 for success, 1 for an error (the message is on standard error), 2 for wrong usage.
Settings are environment variables. DATA_DIR is the folder of the embedded database (./data by default).
DATABASE_URL selects a PostgreSQL database instead. --config reads them from a file of lines NAME=value, such as the
EnvironmentFile of a systemd unit.
Only serve, dev, migrate and account create create a database or run migrations. copy does so in its target.

Start with:
  $ muster serve
`,
    )
  for (const [name, [summary, load]] of Object.entries(COMMANDS)) {
    // Loads only the commands that the arguments name. For the others, the help needs just the name
    // and the summary.
    if (args.includes(name)) (await load()).addCommand(program, shell)
    else program.command(name)
    program.commands.at(-1)?.summary(summary)
  }
  for (const command of listLeafCommands(program)) {
    requireAllOptions(command)
    if (!command.options.some(({ long }) => long === '--json'))
      command.option('--json', 'print one JSON document and nothing else')
  }
  return program
}

/** Names all missing options at once. commander would name only the first. */
function requireAllOptions(command: Command): void {
  const required = command.options.filter(({ mandatory }) => mandatory)
  for (const option of required) option.mandatory = false
  command.hook('preAction', () => {
    const missing = required
      .filter((option) => command.getOptionValue(option.attributeName()) === undefined)
      .map(({ flags }) => `'${flags}'`)
    if (missing.length > 0)
      throw new UsageError(
        `required option${missing.length > 1 ? 's' : ''} ${missing.join(', ')} not specified`,
      )
  })
}

export function listLeafCommands(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(listLeafCommands)
}

async function reportError(error: unknown, environment: Environment): Promise<number> {
  // commander has already printed the error, or the help.
  if (error instanceof CommanderError) return error.exitCode === 0 ? OK : WRONG_USAGE
  if (error instanceof UsageError) {
    console.error(`error: ${error.message}\n${USAGE_HINT}`)
    return WRONG_USAGE
  }
  console.error(await describeError(error, environment))
  return REFUSED
}

/** Returns a sentence for the user. An unexpected error is returned as it is, to show its stack. */
async function describeError(error: unknown, environment: Environment): Promise<unknown> {
  if (error instanceof Refused) return error.message
  const { describeDatabaseError } = await import('./database-errors.ts')
  return describeDatabaseError(error, environment) ?? error
}

/** `muster … | head` closes our standard output early. This is not an error. */
function exitWhenOutputCloses(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(OK)
    throw error
  })
}
