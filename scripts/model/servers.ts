import { valueAt } from './source.ts'

const LOCALHOST = 'http://localhost'
/** Scheme and host of a server's URL. `LOCALHOST` replaces them, because the name of a variable
 *  without a default can make them invalid. */
const ORIGIN = /^([^/?#]*:)?\/\/[^/?#]*/

/** The path of a Server Object's URL with the defaults of its variables. Empty for `/`. */
export function readServerPath(server: unknown): string {
  const url = String(valueAt(server, ['url'])).replace(/\{(.*?)\}/g, (_, name) =>
    String(valueAt(server, ['variables', name, 'default']) ?? name),
  )
  const path = URL.parse(url.replace(ORIGIN, LOCALHOST), LOCALHOST)?.pathname ?? url
  return path.replace(/\/+$/, '')
}
