/** The form of the commands that work on the database, and of the lists that they print. */
import type { Command } from 'commander'
import type { CommandDatabase, SchemaUse } from './installation.ts'
import { examples, formatTable, type Output, type Shell } from './shell.ts'

/** Adds a command, or a group of commands, to its parent. */
export type AddCommand = (parent: Command, shell: Shell) => void

interface DatabaseCommand<Args extends unknown[]> {
  name: string
  /** For the list of commands. cli/main.ts has those of the commands without a group. */
  summary?: string
  description: string
  /** Declares the arguments and options. */
  declare?(command: Command): void
  examples: string[]
  /** Help below the examples. */
  notes?: string
  schema?: SchemaUse
  /** Throws `UsageError` for arguments that do not fit together, before the database is opened. */
  check?(...args: Args): void
  run(database: CommandDatabase & Pick<Shell, 'print'>, ...args: Args): Promise<Output>
}

export function databaseCommand<Args extends unknown[]>({
  name,
  summary = '',
  description,
  declare,
  notes,
  schema,
  check,
  run,
  ...help
}: DatabaseCommand<Args>): AddCommand {
  return (parent, shell) => {
    const command = parent.command(name).summary(summary).description(description)
    declare?.(command)
    command.addHelpText('after', examples(...help.examples))
    if (notes !== undefined) command.addHelpText('after', `${notes}\n`)
    command.action(
      shell.action((...args: Args) => {
        check?.(...args)
        return shell.withDatabase(
          (database) => run({ ...database, print: shell.print }, ...args),
          schema,
        )
      }),
    )
  }
}

export function commandGroup(
  name: string,
  description: string,
  commands: AddCommand[],
): AddCommand {
  return (program, shell) => {
    const group = program.command(name).description(description)
    for (const add of commands) add(group, shell)
  }
}

/** The cells of a row, by heading. */
export type Columns<Row> = Record<string, (row: Row) => string | number | null>

export function toTable<Row>(rows: Row[], columns: Columns<Row>): string {
  return formatTable(
    Object.keys(columns),
    rows.map((row) => Object.values(columns).map((cell) => String(cell(row) ?? ''))),
  )
}

interface List<Row> {
  toDocument(row: Row): object
  columns: Columns<Row>
  /** The text without rows. */
  none: string
}

export function listOutput<Row>(rows: Row[], { toDocument, columns, none }: List<Row>): Output {
  return {
    document: rows.map(toDocument),
    text: rows.length === 0 ? none : toTable(rows, columns),
  }
}
