import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { findDevelopmentProgram } from '../model/development-program.ts'

/** Lets Biome break long lines and sort imports. Throws `Refused` if Biome is not installed. */
export async function formatFiles(root: string, files: string[]): Promise<void> {
  const code = files.filter((file) => /\.[cm]?[jt]s$/.test(file))
  if (code.length === 0) return
  const biome = findFormatter()
  const args = [biome, 'check', '--write', '--vcs-enabled=false', '--linter-enabled=false', ...code]
  await promisify(execFile)(process.execPath, args, { cwd: root })
}

/** The path of Biome. Throws `Refused` if Biome is not installed. */
export function findFormatter(): string {
  return findDevelopmentProgram('@biomejs/biome', 'bin/biome')
}
