/** The faults for which lint, generate, diff and serve refuse a contract. */
import { findInconsistencies } from '../model/consistency.ts'
import type { Contract } from '../model/contract.ts'
import type { Schema } from '../model/schema.ts'
import { ContractError, type Finding, isObject, type Path, type Position } from '../model/source.ts'
import { findUnsupportedParts } from '../model/supported.ts'
import { newCompiler } from './compiler.ts'
import { operations } from './operations.ts'
import { resources } from './resources.ts'
import { validators } from './validators.ts'

export interface Fault {
  file: string
  position: Position
  problem: string
}

/** All faults, without those that `buildContract` throws. */
export function findFaults(contract: Contract): Fault[] {
  const findings = [...findInconsistencies(contract), ...findUnsupportedParts(contract)]
  const ungenerated = findUngenerated(contract)
  // A schema that Ajv refuses has no defaults to check.
  const defaults = ungenerated.length > 0 ? [] : findFaultyDefaults(contract)
  const faults = [...[...findings, ...defaults].map(toFault), ...ungenerated]
  const unique = new Map(faults.map((fault) => [JSON.stringify(fault), fault]))
  return [...unique.values()]
}

function toFault({ source, path, problem }: Finding): Fault {
  return { file: source.file, position: source.position(path), problem }
}

/** The first fault of each part of the generator. */
export function findUngenerated(contract: Contract): Fault[] {
  return [operations, validators, resources].flatMap((write) => {
    try {
      write(contract)
      return []
    } catch (error) {
      if (!(error instanceof ContractError)) throw error
      const { file, position, problem } = error
      return [{ file, position, problem }]
    }
  })
}

/** Defaults that their schema refuses: each request without the value would get 422. */
export function findFaultyDefaults({ sources }: Contract): Finding[] {
  const compiler = newCompiler(sources)
  return Object.values(sources).flatMap((source) =>
    listDefaults(source.root, []).flatMap(({ owner, keyword, path }) => {
      const schema = { source, path, value: owner }
      const validate = compiler.compile(compiler.prepare(schema, 'open'), schema)
      const value = owner[keyword]
      if (validate(structuredClone(value))) return []
      const reasons = (validate.errors ?? []).map(({ message }) => message).join(', ')
      const problem = `the default ${JSON.stringify(value)} ${reasons}: correct the default or its schema`
      return [{ source, path: [...path, keyword], problem }]
    }),
  )
}

interface Default {
  /** The schema with the default. */
  owner: Schema
  keyword: string
  path: Path
}

/** Mappings whose keys are names, not keywords. */
const NAMED = ['properties', 'responses', 'schemas']
/** Keys with values that are no schemas. */
const VALUES = ['example', 'examples', 'default', 'enum', 'const', 'variables']

function listDefaults(node: unknown, path: Path): Default[] {
  if (!isObject(node)) return []
  const isNamed = NAMED.includes(String(path.at(-1)))
  const keywords = isNamed ? [] : ['default', 'x-default'].filter((key) => node[key] !== undefined)
  const children = Object.entries(node).filter(
    ([key]) => isNamed || !(VALUES.includes(key) || key.startsWith('x-')),
  )
  return [
    ...keywords.map((keyword) => ({ owner: node as Schema, keyword, path })),
    ...children.flatMap(([key, child]) => listDefaults(child, [...path, key])),
  ]
}
