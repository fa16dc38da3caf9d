/** Builds and runs a command line: that of this repository (main.ts), and that of API consumers
 *  (tools/main.ts). */
import { Command, CommanderError } from 'commander'
import { validate as isUuid } from 'uuid'
import { Refused } from '../errors.ts'
import { complete } from './completion.ts'
import {
  type Environment,
  newShell,
  paint,
  type Shell,
  UsageError,
  WATCH_SECONDS,
} from './shell.ts'

interface CommandModule {
  addCommand(program: Command, shell: Shell): void
}

/** Commands in the order of the help. They are loaded on demand: some modules load slowly. */
export type Commands = Record<string, [summary: string, load: () => Promise<CommandModule>]>

export interface ProgramDefinition {
  description: string
  version: string
  /** The end of the help. */
  help: string
  commands: Commands
  /** Called with the complete program, before its arguments are parsed. */
  adapt?(program: Command): void
  /** Returns a sentence for an unexpected error, or undefined. */
  describeError?(error: unknown, environment: Environment): Promise<string | undefined>
}

const OK = 0
const REFUSED = 1
const WRONG_USAGE = 2
const USAGE_HINT = 'Add --help to see the usage.'

/** Runs one command. Returns the exit status: 0 for success, 1 for an error, 2 for wrong usage. */
export async function runProgram(
  definition: ProgramDefinition,
  args: string[],
  environment: Environment,
): Promise<number> {
  const shell = newShell(environment)
  exitWhenOutputCloses()
  try {
    const [first, ...words] = args.filter((arg) => arg !== '--')
    if (first === 'complete') {
      shell.print(complete(await newProgram(definition, shell, words), words).join('\n'))
      return OK
    }
    const program = await newProgram(definition, shell, args)
    await program.parseAsync(moveHelp(args.map(normalizeId)), { from: 'user' })
    return shell.exitStatus
  } catch (error) {
    return await reportError(error, (unknown) => definition.describeError?.(unknown, environment))
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

export async function newProgram(
  { description, version, help, commands, adapt }: ProgramDefinition,
  shell: Shell,
  args: string[],
): Promise<Command> {
  const program = new Command('muster')
    .description(description)
    .version(version)
    .exitOverride()
    .configureHelp({
      subcommandTerm: (command) => command.name(),
      styleTitle: (title) => paint('bold', title),
    })
    .showHelpAfterError(USAGE_HINT)
    .addHelpText('after', help)
  for (const [name, [summary, load]] of Object.entries(commands)) {
    // Loads only the commands that the arguments name. For the others, the help needs just the name
    // and the summary.
    if (args.includes(name)) (await load()).addCommand(program, shell)
    else program.command(name)
    program.commands.at(-1)?.summary(summary)
  }
  adapt?.(program)
  for (const command of listLeafCommands(program)) {
    requireAllOptions(command)
    if (!command.options.some(({ long }) => long === '--json'))
      command.option('--json', 'print one JSON document and nothing else')
    if (command.name() === 'list')
      command.option('--watch', `list again every ${WATCH_SECONDS} seconds, until Ctrl-C`)
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

async function reportError(
  error: unknown,
  describe: (error: unknown) => Promise<string | undefined> | undefined,
): Promise<number> {
  // commander has already printed the error, or the help.
  if (error instanceof CommanderError) return error.exitCode === 0 ? OK : WRONG_USAGE
  if (error instanceof UsageError) {
    console.error(`error: ${error.message}\n${USAGE_HINT}`)
    return WRONG_USAGE
  }
  // An unexpected error is printed as it is, to show its stack.
  console.error(error instanceof Refused ? error.message : ((await describe(error)) ?? error))
  return REFUSED
}

/** `muster … | head` closes our standard output early. This is not an error. */
function exitWhenOutputCloses(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(OK)
    throw error
  })
}
