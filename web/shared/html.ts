/** HTML from template literals. Values are escaped, unless they are HTML already. */

/** Text that is HTML, and is not escaped again. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
  toString(): string {
    return this.text
  }
}

export type Content = Html | string | number | false | null | undefined | Content[]

export function html(strings: TemplateStringsArray, ...values: Content[]): Html {
  let text = strings[0] ?? ''
  for (const [index, value] of values.entries()) text += `${textOf(value)}${strings[index + 1]}`
  return new Html(text)
}

/** Marks text as HTML. Only for the output of our own renderers. */
export function raw(text: string): Html {
  return new Html(text)
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

function textOf(value: Content): string {
  if (value instanceof Html) return value.text
  if (Array.isArray(value)) return value.map(textOf).join('')
  return value === false || value === null || value === undefined ? '' : escapeHtml(String(value))
}
