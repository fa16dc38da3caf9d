import { readdir } from 'node:fs/promises'
import { posix } from 'node:path'

/** The sorted names in the directory. Empty if it does not exist. */
export async function listFiles(directory: string, { recursive = false } = {}): Promise<string[]> {
  const names = await readdir(directory, { recursive }).catch((error) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return names.sort()
}

/** The files below the folders, relative to the root. */
export async function listFilesBelow(root: string, folders: readonly string[]): Promise<string[]> {
  const lists = folders.map(async (folder) =>
    (await listFiles(posix.join(root, folder), { recursive: true })).map((file) =>
      posix.join(folder, file),
    ),
  )
  return (await Promise.all(lists)).flat()
}

/** The path of a new migration. It begins with the present minute, because migrations run in the order of time. */
export function newMigrationFile(name: string): string {
  const minute = new Date().toISOString().replace(/\D/g, '').slice(0, 12)
  return `records/migrations/${minute}_${name}.ts`
}
