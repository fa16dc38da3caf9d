/** Writes generated/ from openapi.yaml and asyncapi.yaml. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readContract } from './generate/contract.ts'
import { events } from './generate/events.ts'
import { handlers } from './generate/handlers.ts'
import { operations } from './generate/operations.ts'
import { asyncapi, openapi } from './generate/types.ts'
import { validators, validatorTypes } from './generate/validators.ts'

export { ContractError } from './generate/source.ts'

export interface GenerateOptions {
  /** Only report what differs. */
  check: boolean
  /** Where the two files, handlers/ and generated/ are. */
  root?: string
}

/** Paths relative to the root, such as `generated/events.ts`. */
export interface GenerateResult {
  written: string[]
  removed: string[]
  /** With `check`: one line for each file that differs, is missing, or should not be there. */
  stale: string[]
}

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Makes generated/ what the contract says, or, with `check`, says where it is not. Files that do not change are not touched.
 *  Throws `ContractError` if the contract cannot be generated from; then nothing has been written. */
export async function generate({ check, root = ROOT }: GenerateOptions): Promise<GenerateResult> {
  const outputs = await makeOutputs(root)
  const directory = join(root, 'generated')
  const present = await namesIn(directory)
  const extra = present.filter((file) => !(file in outputs))
  const missing = Object.keys(outputs).filter((file) => !present.includes(file))
  const differing: string[] = []
  for (const [file, text] of Object.entries(outputs)) {
    if (present.includes(file) && (await readFile(join(directory, file), 'utf8')) !== text) differing.push(file)
  }
  if (check) return { written: [], removed: [], stale: report({ differing, missing, extra }) }
  await mkdir(directory, { recursive: true })
  await Promise.all([...missing, ...differing].map((file) => writeFile(join(directory, file), outputs[file] ?? '')))
  await Promise.all(extra.map((name) => rm(join(directory, name), { recursive: true })))
  return { written: [...missing, ...differing].map(pathOf), removed: extra.map(pathOf), stale: [] }
}

function report({ differing, missing, extra }: Record<'differing' | 'missing' | 'extra', string[]>): string[] {
  return [
    ...differing.map((file) => `${pathOf(file)} is stale`),
    ...missing.map((file) => `${pathOf(file)} is missing`),
    ...extra.map((file) => `${pathOf(file)} is left over`),
  ]
}

function pathOf(file: string): string {
  return `generated/${file}`
}

async function makeOutputs(root: string): Promise<Record<string, string>> {
  const contract = await readContract(root)
  const modules = (await namesIn(join(root, 'handlers'))).filter((file) => file.endsWith('.ts')).map((file) => file.slice(0, -'.ts'.length))
  return {
    'asyncapi.ts': await asyncapi(contract),
    'events.ts': events(contract),
    'handlers.ts': handlers(contract, modules),
    // JSON.parse takes 1.5 ms at each start where YAML takes 130.
    'openapi.json': `${JSON.stringify(contract.openapi, null, 2)}\n`,
    'openapi.ts': await openapi(contract),
    'operations.ts': operations(contract),
    'validators.d.ts': validatorTypes(),
    'validators.js': validators(contract),
  }
}

async function namesIn(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch((error) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return names.sort()
}
