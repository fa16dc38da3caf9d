import { readdir } from 'node:fs/promises'
import { posix } from 'node:path'

/** The sorted names of the files and folders in the directory. Empty if there is no directory. */
export async function listNames(directory: string, { recursive = false } = {}): Promise<string[]> {
  const names = await readdir(directory, { recursive }).catch((error) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return names.sort()
}

/** The folders with the code of the service and of its toolchain. */
export const CODE_FOLDERS: readonly string[] = [
  ...['bin', 'cli', 'server', 'web', 'operations', 'handlers', 'webhooks', 'auth', 'records'],
  ...['runtime', 'scripts', 'client'],
]

/** The paths of the files and folders below `folders`, relative to the root. */
export async function listPathsBelow(root: string, folders: readonly string[]): Promise<string[]> {
  const lists = folders.map(async (folder) =>
    (await listNames(posix.join(root, folder), { recursive: true })).map((file) =>
      posix.join(folder, file),
    ),
  )
  return (await Promise.all(lists)).flat()
}

const MINUTE_MS = 60_000

/** The path of a new migration. Migrations run in the order of their names, so its name begins with
 *  the present minute (UTC), or with the next minute that no other migration has. */
export async function newMigrationFile(root: string, name: string): Promise<string> {
  const folder = 'records/migrations'
  const files = await listNames(posix.join(root, folder))
  const timestampOf = (ms: number): string =>
    new Date(ms).toISOString().replace(/\D/g, '').slice(0, 12)
  let timeMs = Date.now()
  while (files.some((file) => file.startsWith(timestampOf(timeMs)))) timeMs += MINUTE_MS
  return `${folder}/${timestampOf(timeMs)}_${name}.ts`
}
