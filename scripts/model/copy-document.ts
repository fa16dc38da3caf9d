import { copyFile, mkdir } from 'node:fs/promises'
import { basename, dirname, extname, join, resolve } from 'node:path'
import { Refused } from '../../errors.ts'
import { readReferencedFiles, readSource } from './document.ts'
import { fileOf, listReferences } from './references.ts'

/** Copies an OpenAPI document to `directory` as openapi.yaml or openapi.json, with the files that
 *  it refers to. Throws `Refused` if one of them is not below the document's folder, or if the new
 *  name of the document breaks references. */
export async function copyDocument(document: string, directory: string): Promise<void> {
  const from = dirname(document)
  const main = await readSource(from, basename(document))
  const { sources } = await readReferencedFiles(from, main)
  const others = Object.keys(sources).filter((file) => file !== main.file)
  const outside = others.find((file) => file.startsWith('..'))
  if (outside !== undefined) {
    const referring = Object.values(sources).find((source) =>
      listReferences(source).some(({ ref }) => fileOf(ref, source) === outside),
    )
    throw new Refused(`${referring?.file} refers to ${outside}: move it below ${resolve(from)}.`)
  }
  const name = extname(document) === '.json' ? 'openapi.json' : 'openapi.yaml'
  const isNamed = Object.values(sources).some((source) =>
    listReferences(source).some(({ ref }) => fileOf(ref, source) === main.file),
  )
  if (main.file !== name && (isNamed || others.includes(name)))
    throw new Refused(
      `The copy of ${main.file} is named ${name}, but ` +
        (isNamed ? `references name ${main.file}. ` : `it refers to another file ${name}. `) +
        `Rename ${main.file} to ${name} first, with the references.`,
    )
  await mkdir(directory, { recursive: true })
  await copyFile(document, join(directory, name))
  for (const file of others) {
    await mkdir(dirname(join(directory, file)), { recursive: true })
    await copyFile(join(from, file), join(directory, file))
  }
}
