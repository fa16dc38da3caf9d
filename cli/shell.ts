/** What every command is run by: it opens what the command needs, prints what it gives and closes again. */
import { readFileSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import type { Db } from '../records/database/open.ts'
import type { Config } from '../server/config.ts'

/** What a command has to say: to programs, one JSON document, and to people. */
export interface Output {
  document: unknown
  text: string
  /** It did its work, and what it found is not well: exit status 1. */
  failed?: boolean
}

export interface Records {
  db: Db
  config: Config
  /** The migrations that were run to bring the tables up to date. */
  migrated: string[]
}

export interface Shell {
  config(): Promise<Config>
  /** Runs `work` with the records, brought up to date before and closed after. */
  records<T>(work: (records: Records) => Promise<T>): Promise<T>
  /** Makes an action of a function that takes the command's arguments and options. What it returns is printed, once;
   *  one that returns nothing has printed for itself. */
  action<Given extends unknown[]>(
    run: (...given: Given) => Promise<Output | undefined>,
  ): (...given: [...Given, Command]) => Promise<void>
  print(text: string): void
  exitStatus: 0 | 1
}

export function newShell(environment: Record<string, string | undefined>): Shell {
  const print = (text: string): void => void process.stdout.write(`${text}\n`)
  const config: Shell['config'] = async () => {
    const { readConfig } = await import('../server/config.ts')
    return readConfig(environment)
  }
  const shell: Shell = {
    config,
    print,
    exitStatus: 0,
    async records(work) {
      const settings = await config()
      const [{ openDatabase }, { migrate, withSetupLock }] = await Promise.all([
        import('../records/database/open.ts'),
        import('../records/database/migrate.ts'),
      ])
      const db = openDatabase(settings.database)
      try {
        const migrated = await withSetupLock(settings.database, () => migrate(db))
        return await work({ db, config: settings, migrated })
      } finally {
        await db.close()
      }
    },
    action<Given extends unknown[]>(run: (...given: Given) => Promise<Output | undefined>) {
      return async (...all: [...Given, Command]) => {
        const command = all.at(-1) as Command
        const output = await run(...(all.slice(0, -1) as Given))
        if (output) print(command.opts().json ? JSON.stringify(output.document) : output.text)
        if (output?.failed) shell.exitStatus = 1
      }
    },
  }
  return shell
}

/** The command was written wrongly in a way that only its action could see: exit status 2. */
export class WrongUsage extends Error {
  override name = 'WrongUsage'
}

/** How the command line says a time of the records. */
export function timeOf(epochMs: number): string
export function timeOf(epochMs: number | null): string | null
export function timeOf(epochMs: number | null): string | null {
  return epochMs === null ? null : new Date(epochMs).toISOString()
}

/** Columns under their headings, each as wide as its widest cell. */
export function table(headings: string[], rows: string[][]): string {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => row[column]?.length ?? 0)),
  )
  const line = (cells: string[]): string =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  return [line(headings), ...rows.map(line)].join('\n')
}

/** What stands below a command's options in its help. */
export function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}\n`
}

/** A secret given as "-" is read from standard input, where it stays out of the shell's history and the list of processes. */
export function secretOf(given: string): string {
  return given === '-' ? readFileSync(0, 'utf8').replace(/\r?\n$/, '') : given
}

/** For an option that takes a comma list of some of `choices`. */
export function listOf<Choice extends string>(...choices: Choice[]): (given: string) => Choice[] {
  return (given) =>
    given.split(',').map((part) => {
      const choice = choices.find((known) => known === part.trim())
      if (choice === undefined)
        throw new InvalidArgumentError(`"${part}" is none of ${choices.join(', ')}.`)
      return choice
    })
}

/** For an option that takes an address of the web. */
export function httpUrlOf(given: string): string {
  if (!URL.canParse(given) || !/^https?:$/.test(new URL(given).protocol))
    throw new InvalidArgumentError('It must be an http or https address.')
  return given
}

/** For an option that takes a port. */
export function portOf(given: string): number {
  if (!/^\d{1,5}$/.test(given) || Number(given) > 65_535)
    throw new InvalidArgumentError('It must be a whole number from 0 to 65535.')
  return Number(given)
}
