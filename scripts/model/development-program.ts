import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Refused } from '../../errors.ts'

/** The path of a program of a development package. `file` is relative to the package. Throws
 *  `Refused` if the package is not installed. */
export function findDevelopmentProgram(name: string, file: string): string {
  try {
    const { resolve } = createRequire(import.meta.url)
    return join(dirname(resolve(`${name}/package.json`)), file)
  } catch (cause) {
    throw new Refused(
      `${name} is not installed: run \`npm ci\` without --omit=dev, then try again`,
      {
        cause,
      },
    )
  }
}
