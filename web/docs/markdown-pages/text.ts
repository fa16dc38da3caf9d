/** Pieces of Markdown. */
import { type Content, html } from '../../shared/html.ts'
import type { ApiEvent } from '../api.ts'
import type { PageContext } from '../page.ts'

export function joinBlocks(blocks: (string | false | undefined)[]): string {
  return `${blocks
    .filter((block) => block)
    .map((block) => String(block).trim())
    .join('\n\n')}\n`
}

/** A heading and its blocks. Undefined if all blocks are empty. */
export function section(heading: string, ...blocks: (string | undefined)[]): string | undefined {
  const content = blocks.filter((block) => block)
  return content.length > 0 ? joinBlocks([`## ${heading}`, ...content]) : undefined
}

export function codeBlock(code: string, language: string): string {
  return `\`\`\`${language}\n${code.trimEnd()}\n\`\`\``
}

export function exampleBlock(value: unknown): string | undefined {
  if (value === undefined) return undefined
  return typeof value === 'string'
    ? codeBlock(value, 'text')
    : codeBlock(JSON.stringify(value, null, 2), 'json')
}

/** Converts a short fragment of HTML to Markdown. Keeps code and links, and only the text of other
 *  elements. */
export function inlineText(content: Content): string {
  return html`${content}`.text
    .replace(/<code[^>]*>(.*?)<\/code>/gs, '`$1`')
    .replace(/<a href="(.*?)">(.*?)<\/a>/gs, '[$2]($1)')
    .replace(/<li>/g, ' ')
    .replace(/<[^>]*>/g, '')
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
    .replace(/\s+/g, ' ')
    .trim()
}

/** Indents the lines after the first, so that they belong to the list item. */
export function listItem(text: string, depth = 0): string {
  const indent = '  '.repeat(depth)
  const [first = '', ...others] = text.trim().split('\n')
  const indented = others.map((line) => (line === '' ? '' : `${indent}  ${line}`))
  return [`${indent}- ${first}`, ...indented].join('\n')
}

export function eventLines({ link }: PageContext, events: ApiEvent[]): string {
  return events
    .map(({ type, summary }) => listItem(`[${type}](${link(`events/${type}`)}): ${summary}`))
    .join('\n')
}
