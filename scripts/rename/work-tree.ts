import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { Refused } from '../../errors.ts'

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024

/** Throws `Refused` unless everything is committed to git. After a commit, `git status` shows what
 *  a command changed, and `git restore .` and `git clean` undo it. */
export async function assertCleanWorkTree(root: string): Promise<void> {
  const { stdout } = await promisify(execFile)('git', ['status', '--porcelain'], {
    cwd: root,
    maxBuffer: MAX_OUTPUT_BYTES,
  }).catch((cause) => {
    throw new Refused(describeFailure(cause), { cause })
  })
  if (stdout !== '')
    throw new Refused(
      'The work tree has changes: commit them or run "git stash -u" first, or add --force',
    )
}

function describeFailure({ stderr, message }: { stderr: string; message: string }): string {
  if (stderr.includes('not a git repository'))
    return 'This folder is not in a git work tree, so the changes cannot be undone: add --force'
  const [reason] = (stderr.trim() || message).split('\n')
  return `git cannot list the changes: ${reason}\nCorrect this, or add --force`
}
