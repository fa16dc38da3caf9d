/** Writes JSON values as code. */
import { IdVariable } from './request.ts'

/** The syntax of JSON values in a language. */
export interface Notation {
  null: string
  true: string
  false: string
  string(text: string): string
  key(text: string): string
  /** Reads an environment variable. */
  variable(name: string): string
  /** The separator of key and value. A colon by default. */
  separator?: string
  object: [open: string, close: string]
  /** An empty object, if it differs from the two brackets of `object`. */
  emptyObject?: string
  /** One level of indentation. */
  indent: string
}

const MAX_LINE_LENGTH = 80

/** Returns a function that writes a value on one line if it fits, but always writes an object with
 *  several entries on several lines. `indent` is the indentation of the line on which the value
 *  begins. */
export function valueWriter(notation: Notation): (value: unknown, indent?: string) => string {
  const { separator = ': ', object, emptyObject } = notation
  return function write(value: unknown, indent = ''): string {
    if (value === null || typeof value === 'boolean')
      return notation[String(value) as 'null' | 'true' | 'false']
    if (typeof value === 'number') return String(value)
    if (typeof value === 'string') return notation.string(value)
    if (value instanceof IdVariable) return notation.variable(value.name)
    const isList = Array.isArray(value)
    const [open, close] = isList ? ['[', ']'] : object
    const inner = indent + notation.indent
    const parts = isList
      ? value.map((item) => write(item, inner))
      : Object.entries(value as object).map(
          ([key, item]) => `${notation.key(key)}${separator}${write(item, inner)}`,
        )
    if (parts.length === 0) return isList ? '[]' : (emptyObject ?? open + close)
    const pad = open === '{' ? ' ' : ''
    const line = `${open}${pad}${parts.join(', ')}${pad}${close}`
    const fits = !line.includes('\n') && indent.length + line.length <= MAX_LINE_LENGTH
    if (fits && (isList || parts.length === 1)) return line
    return `${open}\n${parts.map((part) => `${inner}${part},\n`).join('')}${indent}${close}`
  }
}

/** The parameters with their values as text. */
export function queryPairs(query: [name: string, value: unknown][]): [string, string][] {
  return query.map(([name, value]) => [name, String(value)])
}

/** Leaves out lines that are false. */
export function joinLines(lines: (string | false)[]): string {
  return lines.filter((line) => line !== false).join('\n')
}

export function singleQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`
}

/** Does not escape `#{`, which Ruby would run as code. No example contains `#{`; a test runs all
 *  samples. */
export function doubleQuoted(text: string): string {
  return JSON.stringify(text)
}
