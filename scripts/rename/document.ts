/** Renames an operation or a field of a service that is made from an OpenAPI document. The names in
 *  such a document can be common words, such as `login`, so mentions that may mean something else
 *  are left for a person. */
import { Refused } from '../../errors.ts'
import { listComponents } from '../model/components.ts'
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { isKeyword, toOperationId } from '../model/plain-operations.ts'
import { valueAt } from '../model/source.ts'
import { findSharedField } from './discriminators.ts'
import { assertNames, describeMentions, type FieldName, hasProperty } from './field.ts'
import { assertOperationIds, assertUndeclared, movesOf } from './operation.ts'
import { findComponents, findOwnLines } from './own-lines.ts'
import { type Changes, findMentions, type TextFile, wordPattern } from './text-files.ts'
import { renameInYaml } from './yaml-names.ts'

interface DocumentFiles {
  contract: Contract
  /** The document and the files that it refers to. */
  documents: TextFile[]
  others: TextFile[]
}

/** Throws `Refused` for an unknown name, for a new name that is taken or cannot name a function,
 *  and for an operation without an operationId. */
export function renameDocumentOperation(
  { contract, documents, others }: DocumentFiles,
  name: string,
  newName: string,
): Changes {
  assertOperationIds(contract, name, newName)
  if (toOperationId(newName, '', '') !== newName)
    throw new Refused(`${newName} is not the name of a function: write it like listPets`)
  const operation = contract.operations.find(({ id }) => id === name) as Operation
  const documentId = readDocumentId(operation, newName)
  const affected = others.filter(({ text }) => wordPattern(name).test(text))
  assertUndeclared(affected, newName)
  const moves = movesOf(others, name, newName)
  const handler = `handlers/${name}.ts`
  const renamed = affected.map(({ file, text }) => ({
    file,
    text: text.replace(mentionPattern(name, file === handler), newName),
  }))
  const inDocument = operationIdPattern(documentId)
  const renamedDocuments = documents.map(({ file, text }) => ({
    file,
    text: text.replace(inDocument, newName),
  }))
  return {
    texts: new Map([...renamedDocuments, ...renamed].map(({ file, text }) => [file, text])),
    moves,
    left: [
      ...renamed
        .filter(({ file }) => file !== handler)
        .map(({ file, text }) => ({ file: moves.get(file) ?? file, text }))
        .flatMap((file) => findMentions(file, name))
        .map((place) => `${place} can mean the operation ${name}: write ${newName} there`),
      LAST_TASK,
    ],
  }
}

const LAST_TASK = 'Run `npm run lint`, `npx tsc` and `npm test`'

/** The operationId in the document, for example `issues/list` of the operation `issuesList`. */
function readDocumentId({ id, method, path, place }: Operation, newName: string): string {
  const documentId = valueAt(place.source.root, [...place.path, 'operationId'])
  if (typeof documentId === 'string') return documentId
  throw new Refused(
    `${method.toUpperCase()} ${path} has no operationId: add operationId: ${newName}, and rename handlers/${id}.ts`,
  )
}

/** Finds the ID at the key `operationId` of operations and links, in YAML and in JSON. */
function operationIdPattern(documentId: string): RegExp {
  const id = documentId.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
  return new RegExp(`(?<=\\boperationId["']?\\s*:\\s*["']?)${id}(?=["']?\\s*([,}#]|$))`, 'gm')
}

/** Finds the name where it means the operation. A name of several words means the operation
 *  everywhere. A single word means it only in imports of the handler and, in the handler, as the
 *  name of the function and in types such as `Call<'login'>`. */
function mentionPattern(name: string, isHandler: boolean): RegExp {
  if (/[a-z0-9][A-Z]/.test(name)) return wordPattern(name)
  const inImport = `(?<=/)${name}(?=\\.ts['"])`
  const inHandler = `|(?<=\\bfunction )${name}\\b|(?<=<')${name}(?='>)`
  return new RegExp(inImport + (isHandler ? inHandler : ''), 'g')
}

/** Throws `Refused` for an unknown field, for a new name that is taken, for an old or new name with
 *  other characters than letters, digits and `_`, and for a document of several files or of one
 *  line. */
export function renameDocumentField(
  { contract, documents, others }: DocumentFiles,
  name: FieldName,
): Changes {
  const { schema, field, newField } = name
  const { schemas, places } = findSharedField(contract, schema, field)
  assertNames(contract, schemas, name)
  if (!/^[A-Za-z_]\w*$/.test(field))
    throw new Refused(
      `${field} has other characters than letters, digits and _: rename it by hand, and generate`,
    )
  if (!/^[A-Za-z_]\w*$/.test(newField))
    throw new Refused(`${newField} is not a name of a field: use letters, digits and _ only`)
  const [document] = documents
  if (document === undefined || documents.length > 1)
    throw new Refused('The document has several files: rename the field by hand, and generate')
  if (!document.text.trim().includes('\n'))
    throw new Refused(`${document.file} has one line: format it first`)
  const renames = new Map([[field, newField]])
  const lines = findOwnLines(contract, schemas, [], places).get(document.file) ?? new Set()
  const text = renameInYaml(document.text, lines, renames)
  const handlers = handlersOf(contract, others, schemas, name)
  const unrenamed = others.filter((file) => !handlers.includes(file))
  return {
    texts: new Map([
      [document.file, text],
      ...handlers.map((handler): [string, string] => [
        handler.file,
        handler.text.replace(wordPattern(field), newField),
      ]),
    ]),
    moves: new Map(),
    left: [
      ...[{ file: document.file, text }, ...unrenamed].flatMap((file) =>
        describeMentions(file, name),
      ),
      LAST_TASK,
    ],
  }
}

/** The properties of requests and responses in handlers. If the old or the new name of a field is
 *  one of them, the handlers do not change: the word may mean the property. */
const PARTS_OF_HANDLERS = ['path', 'query', 'headers', 'cookies', 'body', 'caller', 'status']

/** The handlers of operations that use one of the schemas. Empty if the old or the new name can
 *  mean something else in a handler. */
function handlersOf(
  contract: Contract,
  files: TextFile[],
  schemas: string[],
  { field, newField }: FieldName,
): TextFile[] {
  const otherPlaces = [
    ...listComponents(contract.openapi).filter(
      ({ path }) => !schemas.map(schemaPath).includes(path.join(' ')),
    ),
    { value: valueAt(contract.openapi.root, ['paths']) },
  ]
  const isShared = otherPlaces.some(({ value }) => hasProperty(value, field))
  const isPart = (name: string): boolean => PARTS_OF_HANDLERS.includes(name) || isKeyword(name)
  if (isShared || [field, newField].some(isPart)) return []
  const components = new Set(
    schemas.map((schema) => `${contract.openapi.file} ${schemaPath(schema)}`),
  )
  const ids = contract.operations
    .filter(({ place }) => !findComponents(contract, place).isDisjointFrom(components))
    .map(({ id }) => id)
  return files.filter(({ file }) => ids.some((id) => file === `handlers/${id}.ts`))
}

const schemaPath = (schema: string): string => `components schemas ${schema}`
