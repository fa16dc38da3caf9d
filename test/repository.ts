/** A copy of this repository, to be changed at will, and a change of its contract. */
import { cp, mkdtemp, readdir, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const NOT_COPIED = ['node_modules', '.git', 'data', 'coverage']

/** In a temporary folder, with the packages of this one. Returns where. */
export async function copyRepository(): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'muster-tree-'))
  for (const name of await readdir(ROOT))
    if (!NOT_COPIED.includes(name))
      await cp(join(ROOT, name), join(root, name), { recursive: true })
  await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'))
  return root
}

/** openapi.yaml with one operation more: `getPing`, GET /public/v1/ping, which answers 204. */
export function withPing(openapi: string): string {
  return openapi.replace('\npaths:\n', () => `\npaths:\n${PING}`)
}

const PING = `  /public/v1/ping:
    get:
      operationId: getPing
      tags: [Events]
      summary: Ping
      description: Says that it is there.
      responses:
        '204': { $ref: '#/components/responses/NoContent' }
        '422': { $ref: '#/components/responses/ValidationFailed' }
`
