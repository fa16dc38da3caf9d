import { lchownSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** A command that root runs must not leave files in `DATA_DIR` that the service cannot write. So the
 *  owner of the folder gets the file. Nothing changes for other users than root. */
export function giveToFolderOwner(file: string): void {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(dirname(file))
  lchownSync(file, uid, gid)
}
