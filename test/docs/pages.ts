/** Parses pages of the documentation. */

/** The targets of the links of a page, and of everything that it loads. */
export function listTargets(page: string): { attribute: 'href' | 'src'; target: string }[] {
  return [...page.matchAll(/\s(href|src)="([^"]*)"/g)].map(([, attribute, target]) => ({
    attribute: attribute as 'href' | 'src',
    target: unescapeHtml(target ?? ''),
  }))
}

export function listIds(page: string): string[] {
  return [...page.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => unescapeHtml(id ?? ''))
}

/** The code of each tab of a group, by language. */
export function readTabs(page: string, group: string): Record<string, string> {
  const panels = page.matchAll(
    /<div class="tab-panel"[^>]*\sid="([^"]*)"[^>]*\sdata-language="([^"]*)">.*?<code>(.*?)<\/code>/gs,
  )
  return Object.fromEntries(
    [...panels]
      .filter(([, id]) => id?.startsWith(group))
      .map(([, , language, code]) => [
        language,
        unescapeHtml((code ?? '').replace(/<[^>]*>/g, '')),
      ]),
  )
}

function unescapeHtml(text: string): string {
  const named: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"' }
  return text.replace(
    /&(?:#(\d+)|#x([\da-fA-F]+)|(\w+));/g,
    (whole, decimal, hexadecimal, name) => {
      if (name) return named[name] ?? whole
      return String.fromCodePoint(decimal ? Number(decimal) : Number.parseInt(hexadecimal, 16))
    },
  )
}
