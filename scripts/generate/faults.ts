/** The faults for which `generate` refuses a contract. `lint` and `diff` list them. */
import { findInconsistencies } from '../model/consistency.ts'
import type { Contract } from '../model/contract.ts'
import { hasNamesAsKeys, listNodes } from '../model/nodes.ts'
import type { Schema } from '../model/schema.ts'
import {
  ContractError,
  type Finding,
  type Path,
  type Position,
  type Source,
  START,
} from '../model/source.ts'
import { findUnsupportedParts } from '../model/supported.ts'
import { CHECKING_CODE } from './ajv.ts'
import { Compiler } from './compiler.ts'
import { renderOperations } from './operations.ts'
import { renderResources } from './resources.ts'
import { renderValidators } from './validators.ts'

export interface Fault {
  file: string
  position: Position
  problem: string
}

/** All faults except those for which `buildContract` throws. */
export function findFaults(contract: Contract): Fault[] {
  const findings = [...findInconsistencies(contract), ...findUnsupportedParts(contract)]
  const ungenerated = findUngenerated(contract)
  // Checking defaults would throw for a schema that Ajv refuses.
  const defaults = ungenerated.length > 0 ? [] : findFaultyDefaults(contract)
  const faults = [...[...findings, ...defaults].map(toFault), ...ungenerated]
  const unique = new Map(faults.map((fault) => [JSON.stringify(fault), fault]))
  return [...unique.values()]
}

function toFault({ source, path, problem }: Finding): Fault {
  return { file: source.file, position: source.position(path), problem }
}

/** The faults for which a file of generated/ cannot be rendered: at most one for each file. */
export function findUngenerated(contract: Contract): Fault[] {
  return [renderOperations, renderValidators, renderResources].flatMap((render) => {
    try {
      render(contract)
      return []
    } catch (error) {
      if (error instanceof RangeError) return [tooDeep(contract)]
      if (!(error instanceof ContractError)) throw error
      const { file, position, problem } = error
      return [{ file, position, problem }]
    }
  })
}

/** Schemas are compiled by recursive functions, ours and those of Ajv. */
function tooDeep({ openapi }: Contract): Fault {
  const problem = 'has a chain of references that is too long for the validators: shorten it'
  return { file: openapi.file, position: START, problem }
}

/** Defaults that their schema refuses: each request without the value would get 422. */
export function findFaultyDefaults({ sources }: Contract): Finding[] {
  const compiler = new Compiler(sources, CHECKING_CODE)
  // A cache of the valid defaults: many operations have the same parameters and properties.
  const validKeys = new Set<string>()
  const check = (source: Source, { owner, keyword, path }: Default): Finding[] => {
    const key = JSON.stringify([source.file, keyword, owner])
    if (validKeys.has(key)) return []
    const schema = { source, path, value: owner }
    const validate = compiler.compile(compiler.prepare(schema, 'open'), schema)
    const value = owner[keyword]
    // A clone, because the validator adds defaults to the value.
    if (validate(structuredClone(value))) {
      validKeys.add(key)
      return []
    }
    const reasons = (validate.errors ?? []).map(({ message }) => message).join(', ')
    const problem = `the default ${JSON.stringify(value)} ${reasons}: correct the default or its schema`
    return [{ source, path: [...path, keyword], problem }]
  }
  return Object.values(sources).flatMap((source) =>
    listDefaults(source.root).flatMap((found) => check(source, found)),
  )
}

interface Default {
  /** The schema with the default. */
  owner: Schema
  keyword: string
  path: Path
}

function listDefaults(root: unknown): Default[] {
  return listNodes(root).flatMap(({ path, value }) =>
    ['default', 'x-default']
      .filter((keyword) => !hasNamesAsKeys(path) && value[keyword] !== undefined)
      .map((keyword) => ({ owner: value as Schema, keyword, path })),
  )
}
