/** Renames a field in the contracts, in the code of its resource, in the table, and in other files
 *  about the record, such as guides. If other schemas or other code use the name, a person must
 *  rename it in guides and such files. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Refused } from '../../errors.ts'
import { newMigrationFile } from '../generate/files.ts'
import { findRecordOperations, tableOf } from '../generate/resources.ts'
import { listComponents } from '../model/components.ts'
import type { Contract } from '../model/contract.ts'
import { suggest } from '../model/nearest.ts'
import type { MediaType } from '../model/operations.ts'
import { dereference } from '../model/references.ts'
import { isObject, lineOf, type Place, type Source, valueAt } from '../model/source.ts'
import { parseYaml } from '../model/yaml.ts'
import { findSharedField } from './discriminators.ts'
import { splitMadeUp } from './made-up.ts'
import { type Owner, renameInOwnFiles, renameMentions } from './own-files.ts'
import { findOwnLines } from './own-lines.ts'
import { type Changes, findMentions, HISTORY, type TextFile, wordPattern } from './text-files.ts'
import { type Renames, renameInYaml } from './yaml-names.ts'

export interface FieldName {
  schema: string
  field: string
  newField: string
}

/** Throws `Refused` for an unknown field, and for a new name that is taken, is not written like
 *  `created_at`, or lacks `_at` although the old name has it. */
export async function renameField(
  root: string,
  contract: Contract,
  files: TextFile[],
  name: FieldName,
): Promise<Changes> {
  const shared = findSharedField(contract, name.schema, name.field)
  const resource = findOwner(contract, name.schema)
  const owner = { ...resource, schemas: [...new Set([...resource.schemas, ...shared.schemas])] }
  assertNames(contract, owner.schemas, name)
  if (!/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(name.newField))
    throw new Refused(`${name.newField} is not a name of a field: write it like created_at`)
  const renames = renamesFor(name)
  const texts = new Map([
    ...renameInContracts(contract, owner, shared.places, renames),
    ...renameInOwnFiles(owner, files, renames),
  ])
  const unrenamed = files.filter(({ file }) => !texts.has(file) && file !== HISTORY)
  const { others } = splitMadeUp(unrenamed, `${name.schema}:`)
  const left = describeOtherSchemas(contract, owner, name)
  // A common word means something else in most files, so only files about the record are listed.
  const hasOtherUses = left.length > 0 || others.some((file) => isProductUse(file, name.field))
  for (const file of others)
    if (hasOtherUses && isAbout(owner, file)) left.push(...describeMentions(file, name))
    else if (!hasOtherUses && wordPattern(owner.slug ?? name.schema).test(file.text))
      texts.set(file.file, renameMentions(file, renames))
  if (owner.slug !== undefined && texts.has(`records/${owner.slug}.ts`)) {
    const table = tableOf(owner.slug)
    const file = await newMigrationFile(root, `${table}_${name.newField}`)
    texts.set(file, migration(table, name))
    left.push(
      `records/${owner.slug}.ts: the indexes of the column keep their old names: do not rename them there`,
      'Run `npm run update-schema`: the migration renames the column',
    )
  }
  return {
    texts,
    moves: new Map(),
    left: [...new Set(left), 'Run `npx muster lint`, `npx tsc` and the tests'],
  }
}

function renameInContracts(
  contract: Contract,
  { schemas, operations }: Owner,
  places: Place[],
  renames: Renames,
): [string, string][] {
  const lines = findOwnLines(contract, schemas, operations, places)
  return Object.values(contract.sources).map(({ file, text }) => [
    file,
    renameInYaml(text, lines.get(file) ?? new Set(), renames),
  ])
}

/** The renames of the field and, for a time such as `opens_at`, of its filters `opens_after` and
 *  `opens_before`. */
function renamesFor({ field, newField }: FieldName): Renames {
  const [stem, newStem] = [field, newField].map((name) => /^(.+)_at$/.exec(name)?.[1])
  if (stem === undefined) return new Map([[field, newField]])
  if (newStem === undefined)
    throw new Refused(
      `${field} is a time, and lists filter it with ${stem}_after and ${stem}_before: write a name that ends with _at`,
    )
  return new Map(['at', 'after', 'before'].map((end) => [`${stem}_${end}`, `${newStem}_${end}`]))
}

/** The resource whose record or request body is the schema. Without such a resource, the owner has
 *  no slug and only the schema. */
function findOwner(contract: Contract, schema: string): Owner {
  const nameOf = (body: MediaType | null | undefined): string | undefined =>
    body ? String(dereference(contract.sources, body.schema).path.at(-1)) : undefined
  for (const operation of contract.operations) {
    const found = findRecordOperations(contract, operation, contract.operations)
    if (!found) continue
    const record = nameOf(found.get.success.content['application/json'])
    const schemas = [record, nameOf(found.create?.body), nameOf(found.update?.body)]
    if (!schemas.includes(schema)) continue
    const { slug, type, get, create, update, delete: deletion } = found
    return {
      slug,
      type,
      operations: [operation, get, create, update, deletion].flatMap((one) => one?.id ?? []),
      schemas: schemas.filter((name) => name !== undefined),
    }
  }
  return { slug: undefined, type: schema, operations: [], schemas: [schema] }
}

/** Throws `Refused` for an unknown schema or field, and if one of `schemas` has a field of the new
 *  name. */
export function assertNames(contract: Contract, schemas: string[], name: FieldName): void {
  const { schema, field, newField } = name
  const all = Object.values(contract.sources).flatMap((source) => Object.keys(schemasOf(source)))
  if (!all.includes(schema))
    throw new Refused(`The contracts have no schema ${schema}${suggest(schema, all)}`)
  const fieldsOf = (owner: string): string[] =>
    Object.values(contract.sources).flatMap((source) =>
      Object.keys((valueAt(schemasOf(source), [owner, 'properties']) ?? {}) as object),
    )
  const fields = fieldsOf(schema)
  const hint =
    suggest(field, fields) || '. If a part of its allOf declares it, name the schema of that part'
  if (!fields.includes(field)) throw new Refused(`${schema} has no field ${field}${hint}`)
  const taken = schemas.find((other) => fieldsOf(other).includes(newField))
  if (taken) throw new Refused(`${taken} has a field ${newField} already: choose another name`)
}

function schemasOf({ root }: Source): object {
  return (valueAt(root, ['components', 'schemas']) ?? {}) as object
}

/** Throws `Refused` for a field of the released contract: clients use it. */
export async function assertUnreleased(root: string, { schema, field }: FieldName): Promise<void> {
  const file = 'docs/released/openapi.yaml'
  const text = await readFile(join(root, file), 'utf8').catch(() => undefined)
  if (text === undefined) return
  const path = ['components', 'schemas', schema, 'properties', field]
  if (valueAt(parseYaml(file, text).root, path) !== undefined)
    throw new Refused(
      `${file} has ${schema}.${field}, so clients use it: add a field and deprecate this one, or add --force`,
    )
}

const IS_PRODUCT = /^(cli|server|web|operations|handlers|webhooks|auth|records)\//

function isProductUse({ file, text }: TextFile, field: string): boolean {
  return IS_PRODUCT.test(file) && wordPattern(field).test(text)
}

function isAbout({ slug, schemas }: Owner, { text }: TextFile): boolean {
  const words = slug === undefined ? schemas : [slug, ...schemas]
  return words.some((word) => wordPattern(word).test(text))
}

/** A sentence for each component that has a field of this name, except the schemas of the owner. */
function describeOtherSchemas(
  { sources }: Contract,
  { schemas }: Owner,
  { field }: FieldName,
): string[] {
  return Object.values(sources)
    .flatMap(listComponents)
    .filter(({ path }) => path[1] !== 'schemas' || !schemas.includes(String(path[2])))
    .filter(({ value }) => hasProperty(value, field))
    .map((place) => `${place.source.file}:${lineOf(place)} ${place.path[2]} also has ${field}`)
}

export function hasProperty(node: unknown, name: string): boolean {
  if (!isObject(node)) return false
  if (isObject(node.properties) && name in node.properties) return true
  return Object.values(node).some((value) => hasProperty(value, name))
}

export function describeMentions(file: TextFile, { schema, field, newField }: FieldName): string[] {
  return findMentions(file, field).map(
    (place) => `${place} can mean ${schema}.${field}: write ${newField} there`,
  )
}

function migration(table: string, { field, newField }: FieldName): string {
  return `import type { Knex } from 'knex'

export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table ${table} rename column ${field} to ${newField}')
}
`
}
