/** HTML from template literals. Whatever is put in is escaped, unless it is HTML already. */

/** Text that is HTML: it is put in as it is. */
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
  return new Html(
    strings.reduce((text, string, index) => text + textOf(values[index - 1]) + string),
  )
}

/** Only for text that a renderer of ours has made. */
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
