/** A parsed document of the contract, and the error that points into it. */
import { Refused } from '../../errors.ts'

/** Keys and indexes from the root of a document. */
export type Path = readonly (string | number)[]

export interface Position {
  /** `line` and `column` count from 1. */
  line: number
  column: number
}

/** The position of a problem that concerns a whole file. */
export const START: Position = { line: 1, column: 1 }

export interface Source {
  file: string
  text: string
  root: unknown
  /** Position of the key or item at `path`, or of its nearest existing ancestor. */
  position(path: Path): Position
}

/** By file name. */
export type Sources = Record<string, Source>

export interface Place {
  source: Source
  path: Path
}

/** A value and its place. References in the value are relative to the place's file. */
export interface Located<T = unknown> extends Place {
  value: T
}

/** A fault of the contract: its place, and a sentence that ends with how to correct it. */
export interface Finding extends Place {
  problem: string
}

/** A fault of the contract that stops the command. The message begins with `file:line`. */
export class ContractError extends Refused {
  readonly file: string
  readonly position: Position
  /** The message without `file:line`. */
  readonly problem: string

  constructor(file: string, position: Position, problem: string, options?: ErrorOptions) {
    super(`${file}:${position.line} ${problem}`, options)
    this.file = file
    this.position = position
    this.problem = problem
  }
}

export function fail(source: Source, path: Path, problem: string): never {
  throw new ContractError(source.file, source.position(path), problem)
}

export function valueAt(root: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (node, step) => (isObject(node) && Object.hasOwn(node, step) ? node[step] : undefined),
    root,
  )
}

/** The mapping at `path`. Throws `ContractError` for anything else. */
export function mappingAt(source: Source, path: Path): Record<string, unknown> {
  const value = valueAt(source.root, path)
  if (!isObject(value) || Array.isArray(value))
    fail(source, path, `${path.join('.') || 'the document'} must be a mapping: add or correct it`)
  return value
}

/** Also true for arrays. */
export function isObject(value: unknown): value is Record<string | number, unknown> {
  return typeof value === 'object' && value !== null
}

export function lineOf({ source, path }: Place): number {
  return source.position(path).line
}
