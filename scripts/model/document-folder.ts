/** Finds the OpenAPI document of a folder. Loads no parser, because every start of the service
 *  loads this file. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The first that exists is the document. */
export const DOCUMENT_FILES = ['openapi.yaml', 'openapi.yml', 'openapi.json']

/** Only our own contract has this keyword. A folder with such an openapi.yaml and no asyncapi.yaml
 *  is an incomplete contract, not a document of another team. */
const OWN_KEYWORD = /^x-rate-limit:/m

/** Whether the folder has an OpenAPI document of another team. */
export function hasPlainDocument(root: string): boolean {
  const file = findDocument(root)
  if (file === undefined || existsSync(join(root, 'asyncapi.yaml'))) return false
  return file.endsWith('.json') || !OWN_KEYWORD.test(readFileSync(join(root, file), 'utf8'))
}

/** The name of the document in the folder. */
export function findDocument(root: string): string | undefined {
  return DOCUMENT_FILES.find((file) => existsSync(join(root, file)))
}
