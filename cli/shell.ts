/** Functions that the commands share, to open the database, print output and parse arguments. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { styleText } from 'node:util'
import { type Command, InvalidArgumentError } from 'commander'
import { Refused } from '../errors.ts'
import type { Config } from '../server/config.ts'
import type { CommandDatabase, SchemaUse } from './installation.ts'

/** The output of a command: `document` for --json, `text` otherwise. */
export interface Output {
  document: unknown
  text: string
  /** The command ran, but its check failed: exit status 1. */
  failed?: boolean
}

export type Environment = Record<string, string | undefined>

export interface Shell {
  environment: Environment
  /** Creates `DATA_DIR` and its secret key only if `createsFiles` is true. */
  config(options?: { createsFiles: boolean }): Promise<Config>
  /** Opens the database, runs `work`, and closes the database. */
  withDatabase<T>(work: (database: CommandDatabase) => Promise<T>, schema?: SchemaUse): Promise<T>
  /** Converts a function of the command's arguments and options to an action of commander. The
   *  action prints the returned output. A function that returns nothing prints its own output. */
  action<Args extends unknown[]>(
    run: (...args: Args) => Promise<Output | undefined>,
  ): (...args: [...Args, Command]) => Promise<void>
  print(text: string): void
  exitStatus: 0 | 1
}

/** A list every 5 seconds uses a fifth of the API's rate limit. */
export const WATCH_SECONDS = 5
const CLEAR_TERMINAL = '\x1b[2J\x1b[3J\x1b[H'

export function newShell(environment: Environment): Shell {
  const print = (text: string): void => void process.stdout.write(`${text}\n`)
  const config: Shell['config'] = async (options = { createsFiles: false }) => {
    // The databases, keys and backups that a command creates are for its user only.
    process.umask(0o077)
    const { readConfig } = await import('../server/config.ts')
    return readConfig(environment, options)
  }
  const shell: Shell = {
    environment,
    config,
    print,
    exitStatus: 0,
    async withDatabase(work, schema = 'current') {
      const settings = await config({ createsFiles: schema === 'migrate' })
      const { withInstallation } = await import('./installation.ts')
      return withInstallation(settings, schema, work)
    },
    action<Args extends unknown[]>(run: (...args: Args) => Promise<Output | undefined>) {
      return async (...argsAndCommand: [...Args, Command]) => {
        const { json, watch } = (argsAndCommand.at(-1) as Command).opts()
        do {
          const output = await run(...(argsAndCommand.slice(0, -1) as Args))
          if (watch && process.stdout.isTTY) process.stdout.write(CLEAR_TERMINAL)
          if (output) print(json ? JSON.stringify(output.document) : output.text)
          if (output?.failed) shell.exitStatus = 1
          if (watch) await sleep(WATCH_SECONDS * 1000)
        } while (watch)
      }
    },
  }
  return shell
}

/** Wrong usage that commander cannot detect: exit status 2. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** Returns the results of the checks. If checks throw `Refused` or `UsageError`, throws one error
 *  with all of their messages. */
export function checkAll<Checks extends readonly (() => unknown)[]>(
  ...checks: Checks
): { [Index in keyof Checks]: ReturnType<Checks[Index]> } {
  const errors: Error[] = []
  const results = checks.map((check) => {
    try {
      return check()
    } catch (error) {
      if (!(error instanceof Refused || error instanceof UsageError)) throw error
      errors.push(error)
      return undefined
    }
  })
  if (errors.length === 0) return results as { [Index in keyof Checks]: ReturnType<Checks[Index]> }
  const isWrongUsage = errors.some((error) => error instanceof UsageError)
  throw new (isWrongUsage ? UsageError : Refused)(errors.map(({ message }) => message).join('\n'))
}

export function formatTime(epochMs: number): string
export function formatTime(epochMs: number | null): string | null
export function formatTime(epochMs: number | null): string | null {
  return epochMs === null ? null : new Date(epochMs).toISOString()
}

export const MEGABYTE = 1_000_000
export const GIGABYTE = 1_000 * MEGABYTE

export const formatBytes = (bytes: number): string =>
  bytes >= GIGABYTE ? `${(bytes / GIGABYTE).toFixed(1)} GB` : `${Math.ceil(bytes / MEGABYTE)} MB`

type Style = Parameters<typeof styleText>[0]

/** Styles text for standard output: only on a terminal, and not if `NO_COLOR` is set. */
export function paint(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout })
}

const STYLES: Record<string, Style> = {
  delivered: 'green',
  enabled: 'green',
  pending: 'yellow',
  retrying: 'yellow',
  disabled: 'yellow',
  failed: 'red',
}

export function formatTable(headings: string[], rows: string[][]): string {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => row[column]?.length ?? 0)),
  )
  const line = (cells: string[], styleOf: (cell: string) => Style | undefined): string =>
    cells
      .map((cell, column) => {
        const style = styleOf(cell)
        const padding = ' '.repeat(Math.max(0, (widths[column] ?? 0) - cell.length))
        return `${style ? paint(style, cell) : cell}${padding}`
      })
      .join('  ')
      .trimEnd()
  return [
    line(headings, () => 'bold'),
    ...rows.map((row) => line(row, (cell) => STYLES[cell])),
  ].join('\n')
}

export function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}\n`
}

/** For "-", reads the secret from standard input: an argument appears in the shell's history and in
 *  the list of processes. Throws `UsageError` if standard input is empty or was read before. */
export function readSecret(argument: string): string {
  if (argument !== '-') return argument
  const secret = readFileSync(0, 'utf8').replace(/\r?\n$/, '')
  if (secret === '')
    throw new UsageError('standard input is empty: only one option can read its value from there')
  return secret
}

/** Keeps the prefix `whsec_`: the HMAC key of X-Service-Signature is the whole secret. */
export function parseSigningSecret(text: string): string {
  const secret = readSecret(text)
  if (!/^whsec_[A-Za-z0-9+/]+={0,2}$/.test(secret))
    throw new InvalidArgumentError('It must be the whole secret, starting with whsec_.')
  return secret
}

/** Returns a parser of comma-separated lists of `choices`. */
export function parseList<Choice extends string>(
  ...choices: Choice[]
): (argument: string) => Choice[] {
  return (argument) =>
    argument.split(',').map((part) => {
      const choice = choices.find((known) => known === part.trim())
      if (choice === undefined)
        throw new InvalidArgumentError(`"${part}" is not one of ${choices.join(', ')}.`)
      return choice
    })
}

export function parseHttpUrl(argument: string): string {
  if (!URL.canParse(argument) || !/^https?:$/.test(new URL(argument).protocol))
    throw new InvalidArgumentError('Use an http or https URL.')
  return argument
}

/** Returns a parser of whole numbers from `min` to `max`. */
export function parseInteger(min: number, max: number): (argument: string) => number {
  return (argument) => {
    const number = Number(argument)
    if (!/^\d+$/.test(argument) || number < min || number > max)
      throw new InvalidArgumentError(`Use a whole number from ${min} to ${max}.`)
    return number
  }
}

export const parsePort = parseInteger(0, 65_535)
