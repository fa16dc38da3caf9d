/** Other versions of Node on this machine. */
import { existsSync, realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The paths of the other versions of Node on the PATH. */
export function otherNodes(): string[] {
  const candidates = (process.env.PATH ?? '')
    .split(delimiter)
    .map((directory) => join(directory, 'node'))
  const nodes = candidates.filter((node) => existsSync(node)).map((node) => realpathSync(node))
  return [...new Set(nodes)].filter((node) => node !== realpathSync(process.execPath))
}
