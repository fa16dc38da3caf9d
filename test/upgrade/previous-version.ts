/** The previous version of Muster, from the history of this repository. */
import { execFile, execFileSync } from 'node:child_process'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** The commit that stored the databases of the latest release in test/upgrade/stored/. */
const COMMIT = '9fbbd507'
const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** False in a copy without the history. */
export function hasPreviousVersion(): boolean {
  try {
    execFileSync('git', ['cat-file', '-e', `${COMMIT}^{commit}`], { cwd: ROOT, stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Its files in a temporary folder, with the packages of this version. */
export async function newPreviousVersion(): Promise<AsyncDisposable & { bin: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-previous-'))
  const archive = join(folder, 'archive.tar')
  await promisify(execFile)('git', ['archive', '-o', archive, COMMIT], { cwd: ROOT })
  await promisify(execFile)('tar', ['xf', archive, '-C', folder])
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return {
    bin: join(folder, 'bin/muster.js'),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}
