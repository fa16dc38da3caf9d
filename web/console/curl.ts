/** Requests as commands for a POSIX shell, and for bash and zsh where there are control characters in them. The key of a request to the API is
 *  none: it is taken from the environment, as in the documentation. */

export interface ShellRequest {
  method: string
  /** With the query. */
  url: string
  /** As it is sent: JSON. */
  body: string | null
}

export function curlCommand({ method, url, body }: ShellRequest): string {
  // Without -g, curl would take the brackets of `page[size]` for a pattern.
  const brackets = /[[\]{}]/.test(url) ? '-g ' : ''
  const verb =
    method === 'HEAD'
      ? '--head '
      : method === 'GET' || (method === 'POST' && body !== null)
        ? ''
        : `-X ${method} `
  const parts = [
    `curl ${brackets}${verb}${quoted(url)}`,
    '-H "Authorization: Bearer $MUSTER_API_KEY"',
  ]
  // Raw: what begins with an @ would be read as the name of a file.
  if (body !== null) parts.push("-H 'Content-Type: application/json'", `--data-raw ${quoted(body)}`)
  return parts.join(' \\\n  ')
}

/** What a terminal into which it is pasted would act on, such as Ctrl-C or a line break. */
const ACTED_ON = /\p{Cc}/u

/** One word of a command line, whatever is in it. */
export function quoted(text: string): string {
  return ACTED_ON.test(text) ? `$'${escaped(text)}'` : `'${text.replaceAll("'", "'\\''")}'`
}

export function isForBash(...texts: (string | null)[]): boolean {
  return texts.some((text) => text !== null && ACTED_ON.test(text))
}

/** Said beside such a command. */
export const FOR_BASH =
  'It has control characters in it, which are written as bash and zsh read them.'

const NAMED: Record<string, string> = {
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\\': '\\\\',
  "'": "\\'",
}

/** Within `$'…'`. Octal, since there are always three digits: of a hexadecimal number shells take as many as follow. */
function escaped(text: string): string {
  return text.replace(/[\\'\p{Cc}]/gu, (character) => NAMED[character] ?? octal(character))
}

function octal(character: string): string {
  return [...Buffer.from(character)]
    .map((byte) => `\\${byte.toString(8).padStart(3, '0')}`)
    .join('')
}
