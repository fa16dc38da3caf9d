/** Writes generated/ from openapi.yaml and asyncapi.yaml, and stubs for missing handlers and
 *  tests. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Contract } from '../model/contract.ts'
import { fail } from '../model/source.ts'
import { renderHashes } from '../model/source-hashes.ts'
import { readContract } from '../model/yaml.ts'
import type { Remark } from '../report/result.ts'
import { renderEvents } from './events.ts'
import { findFaultyDefaults } from './faults.ts'
import { listNames } from './files.ts'
import { listHandlers, renderHandlerIndex } from './handlers.ts'
import { findMissingColumns } from './missing-columns.ts'
import { toOpenapi31 } from './openapi-31.ts'
import { renderOperations } from './operations.ts'
import { findOrphans } from './orphans.ts'
import { withRepeatedLists } from './repeated-lists.ts'
import { renderResources } from './resources.ts'
import { renderStubs } from './stubs.ts'
import { renderAsyncapiTypes, renderOpenapiTypes } from './types.ts'
import { renderValidators, renderValidatorTypes } from './validators.ts'

export { ContractError } from '../model/source.ts'

interface GenerateOptions {
  /** Whether to write nothing, and to report the differences. */
  check: boolean
  /** The folder with the contract (openapi.yaml and asyncapi.yaml), handlers/ and generated/. */
  root?: string
}

/** Paths are relative to the root, for example `generated/events.ts`. */
export interface GenerateResult {
  written: string[]
  removed: string[]
  /** With `check`: the stale, missing and left-over files. */
  stale: Remark[]
  /** The files, mentions and components of removed operations. The generator never deletes them. */
  orphans: Remark[]
  /** The filters and sorts that the database has no column for. */
  missingColumns: Remark[]
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Writes the files of generated/ that differ, deletes files there that it did not render, and
 *  creates missing stubs. In the contracts, it writes the lists of event types. Never changes other
 *  text that is written by hand. Throws `ContractError` before it writes anything. */
export async function generate({ check, root = ROOT }: GenerateOptions): Promise<GenerateResult> {
  const written = await readContract(root)
  const contract = withRepeatedLists(written)
  const contracts = [contract.openapi, contract.asyncapi].filter(
    ({ file, text }) => written.sources[file]?.text !== text,
  )
  assertDefaults(contract)
  const handlers = await listHandlers(root)
  const outputs = await renderOutputs(contract, handlers)
  const stubs = renderStubs(contract, handlers)
  const directory = join(root, 'generated')
  const differences = await compareOutputs(directory, outputs)
  const remarks = {
    orphans: await findOrphans(root, contract),
    missingColumns: await findMissingColumns(root, contract),
  }
  if (check)
    return {
      written: [],
      removed: [],
      stale: [
        ...contracts.map(({ file }) => ({ file, line: null, message: 'is stale' })),
        ...toRemarks(differences),
        ...remarkMissingHandlers(stubs),
      ],
      ...remarks,
    }
  const changed = [...differences.missing, ...differences.stale]
  await mkdir(directory, { recursive: true })
  await Promise.all(contracts.map(({ file, text }) => writeFile(join(root, file), text)))
  await Promise.all(changed.map((file) => writeFile(join(directory, file), outputs[file] ?? '')))
  await Promise.all(differences.extra.map((name) => rm(join(directory, name), { recursive: true })))
  const created = await createFiles(root, stubs)
  return {
    written: [...contracts.map(({ file }) => file), ...changed.map(toPath), ...created],
    removed: differences.extra.map(toPath),
    stale: [],
    ...remarks,
  }
}

function assertDefaults(contract: Contract): void {
  const [fault] = findFaultyDefaults(contract)
  if (fault) fail(fault.source, fault.path, fault.problem)
}

/** The names of files below generated/. */
interface Differences {
  stale: string[]
  missing: string[]
  extra: string[]
}

async function compareOutputs(
  directory: string,
  outputs: Record<string, string>,
): Promise<Differences> {
  const present = await listNames(directory)
  const stale: string[] = []
  for (const [file, text] of Object.entries(outputs)) {
    if (present.includes(file) && (await readFile(join(directory, file), 'utf8')) !== text)
      stale.push(file)
  }
  return {
    stale,
    missing: Object.keys(outputs).filter((file) => !present.includes(file)),
    extra: present.filter((file) => !(file in outputs)),
  }
}

function toRemarks({ stale, missing, extra }: Differences): Remark[] {
  const remark = (files: string[], message: string): Remark[] =>
    files.map((file) => ({ file: toPath(file), line: null, message }))
  return [
    ...remark(stale, 'is stale'),
    ...remark(missing, 'is missing'),
    ...remark(extra, 'is left over'),
  ]
}

function remarkMissingHandlers(stubs: Record<string, string>): Remark[] {
  return Object.keys(stubs)
    .filter((file) => file.startsWith('handlers/'))
    .map((file) => ({ file, line: null, message: 'is missing' }))
}

function toPath(file: string): string {
  return `generated/${file}`
}

async function createFiles(root: string, files: Record<string, string>): Promise<string[]> {
  const created = await Promise.all(
    Object.entries(files).map(async ([file, text]) => {
      await mkdir(dirname(join(root, file)), { recursive: true })
      // `wx` never overwrites, even a file that was created meanwhile.
      const isNew = await writeFile(join(root, file), text, { flag: 'wx' }).then(
        () => true,
        (error) => {
          if (error.code === 'EEXIST') return false
          throw error
        },
      )
      return isNew ? [file] : []
    }),
  )
  return created.flat()
}

async function renderOutputs(
  contract: Contract,
  handlers: string[],
): Promise<Record<string, string>> {
  return {
    'asyncapi.json': `${JSON.stringify(contract.asyncapi.root, null, 2)}\n`,
    'asyncapi.ts': await renderAsyncapiTypes(contract),
    'events.ts': renderEvents(contract),
    'handlers.ts': renderHandlerIndex(contract, handlers),
    // The service reads JSON at each start: JSON.parse takes 1.5 ms, the YAML parser 130 ms.
    'openapi.json': `${JSON.stringify(contract.openapi.root, null, 2)}\n`,
    'openapi-3.1.json': `${JSON.stringify(toOpenapi31(contract), null, 2)}\n`,
    'openapi.ts': await renderOpenapiTypes(contract),
    'operations.ts': renderOperations(contract),
    'resources.ts': renderResources(contract),
    'sources.json': renderHashes(contract),
    'validators.d.ts': renderValidatorTypes(),
    'validators.js': renderValidators(contract),
  }
}
