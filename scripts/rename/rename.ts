/** `muster rename`: renames an operation or a field in the contracts, the code and the guides. */
import { fileURLToPath } from 'node:url'
import { findFormatter, formatFiles } from '../generate/format.ts'
import { generate } from '../generate/generate.ts'
import { readReferencedFiles, readSource } from '../model/document.ts'
import { hasPlainDocument } from '../model/document-folder.ts'
import { readContract } from '../model/yaml.ts'
import { formatRemark } from '../report/result.ts'
import { readAnyContract } from '../service/read.ts'
import { renameDocumentField, renameDocumentOperation } from './document.ts'
import { assertUnreleased, type FieldName, renameField } from './field.ts'
import { renameOperation } from './operation.ts'
import {
  type Changes,
  readServiceFiles,
  readTextFiles,
  type TextFile,
  writeChanges,
} from './text-files.ts'
import { assertCleanWorkTree } from './work-tree.ts'

interface RenameOptions {
  /** Whether to rename even if the work tree has changes, and even if a released contract has the
   *  field. */
  force: boolean
  root?: string
}

export interface Renamed {
  /** The paths of the changed files, relative to the root. A moved file has its new path. */
  changed: string[]
  moved: { from: string; to: string }[]
  /** What a person must still do, one sentence each. */
  left: string[]
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** `name` is an operation ID, or a field such as `Task.title`. If the function refuses the names,
 *  it throws `Refused` or `ContractError` before it writes anything. */
export async function rename(
  name: string,
  newName: string,
  { force, root = ROOT }: RenameOptions,
): Promise<Renamed> {
  const isDocument = hasPlainDocument(root)
  // Throws before anything is written if the formatter is not installed.
  if (!isDocument) findFormatter()
  if (!force) await assertCleanWorkTree(root)
  const { files, changes } = isDocument
    ? await renameInDocumentService(root, name, newName)
    : await renameInMuster(root, name, newName, force)
  const changed = await writeChanges(root, files, changes)
  if (!isDocument) await formatFiles(root, changed)
  const { written, orphans, missingColumns } = await generate({ check: false, root })
  // In the files of `madeUp`, the old name means the example of docs/new-resource.md and stays.
  const { moves, left, madeUp = [] } = changes
  const remarks = [...orphans, ...missingColumns].filter(
    ({ file }) => file === null || !madeUp.includes(file),
  )
  return {
    changed: [...changed, ...written],
    moved: [...moves].map(([from, to]) => ({ from, to })),
    left: [...left, ...remarks.map(formatRemark)],
  }
}

interface ChangeSet {
  /** The files before the changes. */
  files: TextFile[]
  changes: Changes
}

async function renameInMuster(
  root: string,
  name: string,
  newName: string,
  force: boolean,
): Promise<ChangeSet> {
  const contract = await readContract(root)
  const files = await readTextFiles(root)
  const field = readFieldName(name, newName)
  if (field && !force) await assertUnreleased(root, field)
  const changes = field
    ? await renameField(root, contract, files, field)
    : renameOperation(contract, files, name, newName)
  return { files, changes }
}

async function renameInDocumentService(
  root: string,
  name: string,
  newName: string,
): Promise<ChangeSet> {
  const contract = await readAnyContract(root)
  const main = await readSource(root, contract.openapi.file)
  const documents = Object.values((await readReferencedFiles(root, main)).sources)
  const others = await readServiceFiles(
    root,
    documents.map(({ file }) => file),
  )
  const field = readFieldName(name, newName)
  const service = { contract, documents, others }
  const changes = field
    ? renameDocumentField(service, field)
    : renameDocumentOperation(service, name, newName)
  return { files: [...documents, ...others], changes }
}

/** For a `name` such as `Task.title`, and a `newName` such as `heading` or `Task.heading`.
 *  Undefined if `name` is an operation ID. */
function readFieldName(name: string, newName: string): FieldName | undefined {
  const [schema = '', field] = name.split('.')
  if (field === undefined) return undefined
  return { schema, field, newField: newName.replace(`${schema}.`, '') }
}
