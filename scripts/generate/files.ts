import { readdir } from 'node:fs/promises'

/** The sorted names in the directory. Empty if it does not exist. */
export async function listFiles(directory: string, { recursive = false } = {}): Promise<string[]> {
  const names = await readdir(directory, { recursive }).catch((error) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return names.sort()
}
