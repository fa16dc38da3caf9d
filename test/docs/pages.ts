/** Pages of the documentation, taken apart. */

/** Targets of links and of whatever a page loads. */
export function targetsOf(page: string): { attribute: 'href' | 'src'; target: string }[] {
  return [...page.matchAll(/\s(href|src)="([^"]*)"/g)].map(([, attribute, target]) => ({
    attribute: attribute as 'href' | 'src',
    target: unescaped(target ?? ''),
  }))
}

export function idsOf(page: string): string[] {
  return [...page.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => unescaped(id ?? ''))
}

/** The code of each tab of a group, by language. */
export function tabsOf(page: string, group: string): Record<string, string> {
  const panels = page.matchAll(
    /<div class="tab-panel"[^>]*\sid="([^"]*)"[^>]*\sdata-language="([^"]*)">.*?<code>(.*?)<\/code>/gs,
  )
  return Object.fromEntries(
    [...panels]
      .filter(([, id]) => id?.startsWith(group))
      .map(([, , language, code]) => [language, unescaped((code ?? '').replace(/<[^>]*>/g, ''))]),
  )
}

function unescaped(text: string): string {
  const named: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"' }
  return text.replace(
    /&(?:#(\d+)|#x([\da-fA-F]+)|(\w+));/g,
    (whole, decimal, hexadecimal, name) => {
      if (name) return named[name] ?? whole
      return String.fromCodePoint(decimal ? Number(decimal) : Number.parseInt(hexadecimal, 16))
    },
  )
}
