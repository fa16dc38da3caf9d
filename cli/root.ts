/** The option `--root` of the commands that read the contracts. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { InvalidArgumentError } from 'commander'
import { hasPlainDocument } from '../scripts/model/document-folder.ts'

export const ROOT_OPTION = '--root <folder>'

/** Returns the absolute path of a folder with a contract. */
export function parseRoot(argument: string): string {
  const root = resolve(argument)
  if (!hasPlainDocument(root) && !existsSync(join(root, 'openapi.yaml')))
    throw new InvalidArgumentError('It has no openapi.yaml, openapi.yml or openapi.json.')
  return root
}

/** Like `parseRoot`, but refuses the folder of a copy of Muster: only the commands of that copy can
 *  run its service. */
export function parseDocumentRoot(argument: string): string {
  const root = parseRoot(argument)
  if (!hasPlainDocument(root))
    throw new InvalidArgumentError('It is a copy of Muster: run the command there, without --root.')
  return root
}
