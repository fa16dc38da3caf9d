import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { Refused } from '../../errors.ts'

/** Throws `Refused` unless git has everything committed: then `git diff` shows the changes of a
 *  command, and `git restore` undoes them. */
export async function assertCleanWorkTree(root: string): Promise<void> {
  const { stdout } = await promisify(execFile)('git', ['status', '--porcelain'], {
    cwd: root,
  }).catch((cause) => {
    throw new Refused(
      'This folder is not in a git work tree, so the changes cannot be undone: add --force',
      { cause },
    )
  })
  if (stdout !== '')
    throw new Refused('The work tree has changes: commit or stash them first, or add --force')
}
