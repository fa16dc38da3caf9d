/** Quotes text as one word of a command line. Text with control characters needs bash or zsh, other
 *  text any POSIX shell. */

/** A terminal acts on these when they are pasted, for example Ctrl-C. Line breaks within quotes are
 *  safe. */
const CONTROL_CHARACTER = /[^\P{Cc}\n]/u

export function quoteForShell(text: string): string {
  return CONTROL_CHARACTER.test(text)
    ? `$'${escapeForBash(text)}'`
    : `'${text.replaceAll("'", "'\\''")}'`
}

/** Quotes text in which `$NAME` stands for the value of one of the variables. */
export function quoteWithVariables(text: string, variables: string[]): string {
  if (variables.length === 0) return quoteForShell(text)
  const parts = text.split(new RegExp(`\\$(${variables.join('|')})\\b`))
  if (parts.length === 1) return quoteForShell(text)
  // A URL is easier to read in one pair of quotation marks.
  if (!/["`\\!$\n]/.test(parts.filter((_, index) => index % 2 === 0).join(''))) return `"${text}"`
  return parts.map((part, index) => (index % 2 === 0 ? quoteForShell(part) : `"$${part}"`)).join('')
}

/** Are these quoted in a way that a plain POSIX shell cannot read? Then show `BASH_NOTE` with the
 *  command. */
export function needsBash(...texts: (string | null)[]): boolean {
  return texts.some((text) => text !== null && CONTROL_CHARACTER.test(text))
}

export const BASH_NOTE = 'This command contains control characters. Run it in bash or zsh.'

const ESCAPES: Record<string, string> = {
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\\': '\\\\',
  "'": "\\'",
}

/** The inside of `$'…'`. Octal escapes have exactly three digits. Hexadecimal ones vary in
 *  length. */
function escapeForBash(text: string): string {
  return text.replace(/[\\'\p{Cc}]/gu, (character) => ESCAPES[character] ?? toOctal(character))
}

function toOctal(character: string): string {
  return [...Buffer.from(character)]
    .map((byte) => `\\${byte.toString(8).padStart(3, '0')}`)
    .join('')
}
