/** The operations whose contract or code changed since a git revision. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { promisify } from 'node:util'
import { readBase } from '../diff/diff.ts'
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { locate } from '../model/references.ts'
import { type Place, type Source, valueAt } from '../model/source.ts'
import { readBatchWords } from '../words/batches.ts'
import { readImportWords } from '../words/imports.ts'

/** Changes of files that git does not track count, too. Throws `Refused` if git does not know the
 *  revision. */
export async function listChangedOperations(
  root: string,
  contract: Contract,
  gitRevision: string,
): Promise<string[]> {
  const base = await readBase(root, gitRevision)
  const files = await listChangedFiles(root, gitRevision)
  const affectedBy = readImports(root, contract)
  const ids = new Set(files.flatMap(affectedBy))
  return contract.operations
    .filter((operation) => {
      const before = base.operations.find(({ id }) => id === operation.id)
      const isSame = before && textOf(base, before) === textOf(contract, operation)
      return ids.has(operation.id) || !isSame
    })
    .map(({ id }) => id)
}

/** The operation and everything that determines its tests: its events, the targets of all
 *  references, and the parts of the documents that concern every operation. */
function textOf({ sources, openapi, asyncapi, events }: Contract, operation: Operation): string {
  const parts = new Map<string, unknown>()
  const add = (name: string, source: Source, value: unknown): void => {
    if (parts.has(name)) return
    parts.set(name, value)
    JSON.stringify(value, (key, child) => {
      if (key !== '$ref') return child
      const target = locate(sources, source, String(child))
      add(`${target.source.file} ${target.path.join('/')}`, target.source, target.value)
    })
  }
  const addPlace = (name: string, { source, path }: Place): void =>
    add(name, source, valueAt(source.root, path))
  const { info: _, tags, paths, components, ...common } = openapi.root as Record<string, unknown>
  add('every operation', openapi, common)
  addPlace('operation', operation.place)
  for (const { in: where, name, place } of operation.parameters) addPlace(`${where} ${name}`, place)
  for (const { type, place } of events)
    if (operation.emits.includes(type)) addPlace(`event ${type}`, place)
  if (operation.emits.length > 0) parts.set('deliveries', valueAt(asyncapi.root, ['operations']))
  return JSON.stringify([operation.method, operation.path, ...parts])
}

async function listChangedFiles(root: string, gitRevision: string): Promise<string[]> {
  const git = async (...args: string[]): Promise<string[]> => {
    const { stdout } = await promisify(execFile)('git', args, { cwd: root })
    return stdout.split('\0').filter((file) => file !== '')
  }
  return [
    ...(await git('diff', '-z', '--name-only', '--relative', '--end-of-options', gitRevision)),
    ...(await git('ls-files', '-z', '--others', '--exclude-standard')),
  ]
}

/** The code of the service and what creates it. The files of generated/ are left out: they change
 *  with the contract or with what creates them. */
const CODE =
  /^((handlers|operations|records|runtime|server|webhooks|auth|scripts\/(generate|model))\/|(errors|validation)\.ts$|package-lock\.json$)/
/** The console does not serve the API. The generated list of handlers imports all of them. */
const NOT_FOLLOWED = /^(web\/|generated\/handlers\.ts$)/
const IMPORT = /'(\.{1,2}\/[^'\n]+\.(?:ts|js))'/g

/** Returns a function from a changed file to the operations that it affects. The file of a handler
 *  or of a resource (`records/tasks.ts`), and each file that only such files import, affects the
 *  operations whose handlers import it, also indirectly. Batches and imports also have the handlers
 *  of their items and rows. Any other code affects every operation. */
function readImports(root: string, { operations }: Contract): (file: string) => readonly string[] {
  const ids = operations.map(({ id }) => id)
  const imports = new Map<string, string[]>()
  const listReached = (start: string, leftOut: string[] = []): Set<string> => {
    const found = new Set([start])
    // The loop also visits the files that it adds.
    for (const file of found) {
      const own = imports.get(file) ?? readImportsOf(root, file)
      imports.set(file, own)
      for (const imported of own)
        if (!NOT_FOLLOWED.test(imported) && !leftOut.includes(imported)) found.add(imported)
    }
    return found
  }
  const common = listReached('server/main.ts', operations.map(toResourceFile))
  const byHandler = operations.map((operation) => ({
    id: operation.id,
    files: new Set(listHandlers(operation).flatMap((id) => [...listReached(`handlers/${id}.ts`)])),
  }))
  return (file) => {
    if (!CODE.test(file)) return []
    const found = byHandler.filter(({ files }) => files.has(file)).map(({ id }) => id)
    return common.has(file) || found.length === 0 ? ids : found
  }
}

/** The operation, and those that it does for each item or row. */
function listHandlers(operation: Operation): string[] {
  const { create, update } = readBatchWords(operation) ?? {}
  const { creates = {} } = readImportWords(operation) ?? {}
  const others = [create, update, ...Object.values(creates)].filter((id) => id !== undefined)
  return [operation.id, ...others]
}

/** The last fixed part of the path before its first parameter names the resource. */
function toResourceFile({ path }: Operation): string {
  return `records/${path
    .replace(/\/\{.*/, '')
    .split('/')
    .at(-1)}.ts`
}

function readImportsOf(root: string, file: string): string[] {
  const path = join(root, file)
  if (!existsSync(path)) return []
  return [...readFileSync(path, 'utf8').matchAll(IMPORT)].map(([, target = '']) =>
    posix.join(posix.dirname(file), target),
  )
}
