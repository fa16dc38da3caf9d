/** Quotes text as one word of a command line. Text with control characters needs bash or zsh, other
 *  text any POSIX shell. */

/** Any control character but the line break, which is safe within quotes. A terminal acts on pasted
 *  control characters, for example Ctrl-C. */
const CONTROL_CHARACTER = /[^\P{Cc}\n]/u

export function quoteForShell(text: string): string {
  return CONTROL_CHARACTER.test(text)
    ? `$'${escapeForBash(text)}'`
    : `'${text.replaceAll("'", "'\\''")}'`
}

const SPECIAL_IN_DOUBLE_QUOTES = /["`\\!$\p{Cc}]/u

/** Quotes text in which `$NAME` stands for the value of one of the variables. */
export function quoteWithVariables(text: string, variables: string[]): string {
  if (variables.length === 0) return quoteForShell(text)
  // The names of variables are at the odd indexes.
  const parts = text.split(new RegExp(`\\$(${variables.join('|')})\\b`))
  if (parts.length === 1) return quoteForShell(text)
  const fixedText = parts.filter((_, index) => index % 2 === 0).join('')
  // A URL is easier to read in one pair of quotation marks.
  if (!SPECIAL_IN_DOUBLE_QUOTES.test(fixedText)) return `"${text}"`
  return parts.map((part, index) => (index % 2 === 0 ? quoteForShell(part) : `"$${part}"`)).join('')
}

/** Does `quoteForShell` quote one of the texts in a way that a plain POSIX shell cannot read? Then
 *  show `BASH_NOTE` with the command. */
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

/** The text between the quotation marks of `$'…'`. Octal escapes have three digits,
 *  the most that a shell reads, so that no digit after them is read as part of them. */
function escapeForBash(text: string): string {
  return text.replace(/[\\'\p{Cc}]/gu, (character) => ESCAPES[character] ?? toOctal(character))
}

function toOctal(character: string): string {
  return [...Buffer.from(character)]
    .map((byte) => `\\${byte.toString(8).padStart(3, '0')}`)
    .join('')
}
