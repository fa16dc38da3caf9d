/** Renders the Markdown of guides and descriptions. HTML in it is escaped. */
import MarkdownIt, { type Token } from 'markdown-it'
import { headingIds } from '../../scripts/model/heading-ids.ts'
import { type Html, raw } from '../shared/html.ts'
import { type CodeSample, highlightedCode, languageTabs } from './code.ts'

export interface MarkdownOptions {
  /** The URL for a relative link. If it returns undefined, only the text of the link is shown. */
  resolve?(href: string): string | undefined
  /** The URL of the page about the operation or event named in `code`. Undefined: there is none. */
  subject?(code: string): string | undefined
  /** Reads a linked source file. A list that contains only such links becomes tabs. */
  readCode?(href: string): string
}

export interface Heading {
  level: number
  id: string
  text: string
}

export interface Rendered {
  body: Html
  /** The heading of level 1 at the start of the text. It is not part of `body`. */
  title: string | undefined
  headings: Heading[]
}

/** The languages of source files by the end of their names. */
const LANGUAGES_BY_EXTENSION: Record<string, string> = {
  ts: 'typescript',
  py: 'python',
  php: 'php',
  go: 'go',
  rb: 'ruby',
  java: 'java',
}

const parser = new MarkdownIt({ html: false, linkify: false, typographer: false })

parser.renderer.rules.fence = (tokens, index) => {
  const { content = '', info = '' } = tokens[index] ?? {}
  // `info` is the text after the opening fence. The name of a file can follow the language.
  const [language = ''] = info.trim().split(' ')
  return highlightedCode(content, language).text
}
parser.renderer.rules.code_inline = (tokens, index, _options, env) => {
  const content = tokens[index]?.content ?? ''
  const code = `<code>${parser.utils.escapeHtml(content)}</code>`
  const href = isInLink(tokens, index)
    ? undefined
    : (env as MarkdownOptions | undefined)?.subject?.(content)
  return href === undefined ? code : `<a href="${parser.utils.escapeHtml(href)}">${code}</a>`
}
// A wide table scrolls within the page.
parser.renderer.rules.table_open = () =>
  '<div class="table" tabindex="0" role="group" aria-label="Table"><table>'
parser.renderer.rules.table_close = () => '</table></div>'

export function renderMarkdown(text: string, options: MarkdownOptions = {}): Rendered {
  const env = { ...options }
  const tokens = parser.parse(text, env)
  const title = takeTitle(tokens)
  const headings = addHeadingIds(tokens)
  resolveLinks(tokens, options)
  const body = parser.renderer.render(withTabs(tokens, options), parser.options, env)
  return { body: raw(body), title, headings }
}

/** Removes the three tokens of a heading of level 1 at the start, and returns its text. */
function takeTitle(tokens: Token[]): string | undefined {
  if (tokens[0]?.type !== 'heading_open' || tokens[0].tag !== 'h1') return undefined
  const [, inline] = tokens.splice(0, 3)
  return inline?.content
}

function addHeadingIds(tokens: Token[]): Heading[] {
  const headings = tokens.flatMap((token, index) =>
    token.type === 'heading_open'
      ? [{ token, text: tokens[index + 1]?.content.replaceAll('`', '') ?? '' }]
      : [],
  )
  const ids = headingIds(headings.map(({ text }) => text))
  return headings.map(({ token, text }, index) => {
    const id = ids[index] ?? ''
    token.attrSet('id', id)
    return { level: Number(token.tag.slice(1)), id, text }
  })
}

/** Replaces the URL of each relative link by the one that `resolve` returns. If there is none, only
 *  the text of the link stays. `meta` keeps the original URL for `readSample`. Links with a scheme
 *  and links within the page do not change. */
function resolveLinks(tokens: Token[], { resolve }: MarkdownOptions): void {
  for (const { children } of tokens)
    for (const [index, token] of (children ?? []).entries()) {
      const href = token.type === 'link_open' ? String(token.attrGet('href')) : ''
      if (href === '' || /^([a-z]+:|#)/.test(href)) continue
      token.meta = { href }
      const target = resolve?.(href)
      if (target !== undefined) token.attrSet('href', target)
      else {
        const close = children?.slice(index).find(({ type }) => type === 'link_close')
        for (const tag of [token, close]) Object.assign(tag ?? {}, { type: 'text', content: '' })
      }
    }
}

function isInLink(tokens: Token[], index: number): boolean {
  const earlierTypes = tokens.slice(0, index).map(({ type }) => type)
  return earlierTypes.lastIndexOf('link_open') > earlierTypes.lastIndexOf('link_close')
}

/** Replaces each list of links to source files by tabs with the files. */
function withTabs(tokens: Token[], { readCode }: MarkdownOptions): Token[] {
  if (!readCode) return tokens
  const result: Token[] = []
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index] as Token
    const list = token.type === 'bullet_list_open' ? listAt(tokens, index) : []
    const samples = readSamples(list, readCode)
    result.push(token)
    if (samples.length === 0) continue
    const content = languageTabs(`code-${index}`, 'Code', samples).text
    Object.assign(token, { type: 'html_block', content })
    index += list.length - 1
  }
  return result
}

/** The tokens of the list that opens at `index`. */
function listAt(tokens: Token[], index: number): Token[] {
  const end = tokens.findIndex(
    ({ type, level }, position) =>
      position > index && type === 'bullet_list_close' && level === tokens[index]?.level,
  )
  return tokens.slice(index, end + 1)
}

/** The linked files. None unless each item of the list is only a link to a source file. */
function readSamples(list: Token[], readCode: (href: string) => string): CodeSample[] {
  const items = list.filter(({ type }) => type === 'inline')
  const samples = items.map((item) => readSample(item, readCode))
  return samples.every((sample) => sample !== undefined) ? samples : []
}

/** A link has three tokens: its start, its text and its end. */
function readSample(
  { children }: Token,
  readCode: (href: string) => string,
): CodeSample | undefined {
  const href: unknown = children?.[0]?.meta?.href
  if (typeof href !== 'string' || children?.length !== 3) return undefined
  const language = LANGUAGES_BY_EXTENSION[href.split('.').at(-1) ?? '']
  return language === undefined ? undefined : { language, code: readCode(href) }
}
