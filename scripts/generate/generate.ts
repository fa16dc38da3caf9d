/** Writes generated/ from openapi.yaml and asyncapi.yaml, and stubs for missing handlers and
 *  tests. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Contract } from '../model/contract.ts'
import { isPlain } from '../model/document-folder.ts'
import { fail } from '../model/source.ts'
import { sources } from '../model/source-hashes.ts'
import type { Remark } from '../report/result.ts'
import { readAnyContract } from '../service/read.ts'
import { events } from './events.ts'
import { findFaultyDefaults } from './faults.ts'
import { listFiles } from './files.ts'
import { handlers, listHandlers } from './handlers.ts'
import { findMissingColumns } from './missing-columns.ts'
import { openapi31 } from './openapi-31.ts'
import { operations } from './operations.ts'
import { findOrphanHandlers, findOrphans } from './orphans.ts'
import { plainOutputs, plainStubs } from './plain.ts'
import { resources } from './resources.ts'
import { writeStubs } from './stubs.ts'
import { asyncapi, openapi } from './types.ts'
import { validators, validatorTypes } from './validators.ts'

export { ContractError } from '../model/source.ts'

export interface GenerateOptions {
  /** Write nothing; report the differences. */
  check: boolean
  /** The folder of the two files, handlers/ and generated/. */
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

/** Writes the files that differ, and never changes a file that is written by hand.
 *  Throws `ContractError` for a faulty contract, before it writes anything. */
export async function generate({ check, root = ROOT }: GenerateOptions): Promise<GenerateResult> {
  const isDocument = isPlain(root)
  const contract = await readAnyContract(root)
  if (!isDocument) assertDefaults(contract)
  const written = await listHandlers(root)
  const outputs = await (isDocument ? plainOutputs(contract) : makeOutputs(contract, written))
  const stubs = (isDocument ? plainStubs : writeStubs)(contract, written)
  const directory = join(root, 'generated')
  const present = await listFiles(directory)
  const orphans = await (isDocument ? findOrphanHandlers : findOrphans)(root, contract)
  const missingColumns = isDocument ? [] : await findMissingColumns(root, contract)
  const extra = present.filter((file) => !(file in outputs))
  const missing = Object.keys(outputs).filter((file) => !present.includes(file))
  const differing: string[] = []
  for (const [file, text] of Object.entries(outputs)) {
    if (present.includes(file) && (await readFile(join(directory, file), 'utf8')) !== text)
      differing.push(file)
  }
  if (check) {
    const unwritten = Object.keys(stubs).filter((file) => file.startsWith('handlers/'))
    return {
      written: [],
      removed: [],
      stale: report({ differing, missing, extra, unwritten }),
      orphans,
      missingColumns,
    }
  }
  await mkdir(directory, { recursive: true })
  await Promise.all(
    [...missing, ...differing].map((file) => writeFile(join(directory, file), outputs[file] ?? '')),
  )
  await Promise.all(extra.map((name) => rm(join(directory, name), { recursive: true })))
  const created = await writeNew(root, stubs)
  return {
    written: [...[...missing, ...differing].map(toPath), ...created],
    removed: extra.map(toPath),
    stale: [],
    orphans,
    missingColumns,
  }
}

function assertDefaults(contract: Contract): void {
  const [fault] = findFaultyDefaults(contract)
  if (fault) fail(fault.source, fault.path, fault.problem)
}

function report({
  differing,
  missing,
  extra,
  unwritten,
}: Record<'differing' | 'missing' | 'extra' | 'unwritten', string[]>): Remark[] {
  const say = (files: string[], message: string): Remark[] =>
    files.map((file) => ({ file, line: null, message }))
  return [
    ...say(differing.map(toPath), 'is stale'),
    ...say(missing.map(toPath), 'is missing'),
    ...say(extra.map(toPath), 'is left over'),
    ...say(unwritten, 'is missing'),
  ]
}

function toPath(file: string): string {
  return `generated/${file}`
}

/** Writes the files that do not exist. Returns their paths. */
async function writeNew(root: string, files: Record<string, string>): Promise<string[]> {
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

async function makeOutputs(contract: Contract, written: string[]): Promise<Record<string, string>> {
  return {
    'asyncapi.json': `${JSON.stringify(contract.asyncapi.root, null, 2)}\n`,
    'asyncapi.ts': await asyncapi(contract),
    'events.ts': events(contract),
    'handlers.ts': handlers(contract, written),
    // Read at each start: JSON.parse takes 1.5 ms, the YAML parser 130.
    'openapi.json': `${JSON.stringify(contract.openapi.root, null, 2)}\n`,
    'openapi-3.1.json': `${JSON.stringify(openapi31(contract), null, 2)}\n`,
    'openapi.ts': await openapi(contract),
    'operations.ts': operations(contract),
    'resources.ts': resources(contract),
    'sources.json': sources(contract),
    'validators.d.ts': validatorTypes(),
    'validators.js': validators(contract),
  }
}
