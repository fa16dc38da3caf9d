/** This repository, temporary copies of it, and changes of its contract. */
import { cp, mkdtemp, readdir, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse, stringify } from 'yaml'

export const ROOT = fileURLToPath(new URL('..', import.meta.url))
const NOT_COPIED = ['node_modules', '.git', 'data', 'coverage']

/** Copies the repository to a temporary folder, with a link to this node_modules. Returns the
 *  folder. */
export async function copyRepository(): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'muster-tree-'))
  for (const name of await readdir(ROOT))
    if (!NOT_COPIED.includes(name))
      await cp(join(ROOT, name), join(root, name), { recursive: true })
  await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'))
  return root
}

/** Replaces the first occurrence of `from`. Throws if there is none. */
export function replaceOnce(text: string, from: string, to: string): string {
  if (!text.includes(from)) throw new Error(`The text does not contain ${JSON.stringify(from)}`)
  return text.replace(from, () => to)
}

/** Adds copies of each operation to openapi.yaml, under paths and operation IDs of their own. */
export function withCopies(openapi: string, copies: number): string {
  const document: { paths: Record<string, object> } = parse(openapi)
  const paths = Object.entries(document.paths)
  for (let copy = 1; copy <= copies; copy++)
    for (const [path, item] of paths) {
      const text = JSON.stringify(item).replaceAll(/(?<="operationId":")\w+/g, `$&Copy${copy}`)
      const to = path.replace('/public/v1/', `/public/v1/copy-${copy}/`)
      document.paths[to] = JSON.parse(text)
    }
  return stringify(document, { aliasDuplicateObjects: false })
}

/** Adds the operation `getPing` to openapi.yaml: GET /public/v1/ping responds with 204. */
export function withPing(openapi: string): string {
  return replaceOnce(openapi, '\npaths:\n', `\npaths:\n${PING}`)
}

const PING = `  /public/v1/ping:
    get:
      operationId: getPing
      tags: [Events]
      summary: Ping
      description: Checks the connection.
      responses:
        '204': { $ref: '#/components/responses/NoContent' }
        '422': { $ref: '#/components/responses/ValidationFailed' }
`
