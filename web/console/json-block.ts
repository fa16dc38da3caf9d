/** JSON for people: indented, with colours. */
import { type Content, type Html, html } from '../shared/html.ts'
import { codeBlock } from './ui.ts'

export function jsonBlock(text: string, label: string): Html {
  const pretty = prettyJson(text)
  return codeBlock(text, label, pretty === undefined ? text : highlightJson(pretty))
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Without these limits, deep indentation could turn a small body into a huge page. */
const MAX_PRETTY_DEPTH = 32
const MAX_PRETTY_LENGTH = 256 * 1024
/** In valid JSON: a string, a punctuation mark, a number, true, false or null. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}:,]|[^\s"[\]{}:,]+/g

/** Indented JSON. Undefined: the text is not JSON, has too many levels, or would become too long.
 *  Copies every value unchanged, so that large numbers are not rounded and duplicate names stay. */
export function prettyJson(text: string): string | undefined {
  if (!isJson(text)) return undefined
  let pretty = ''
  let depth = 0
  let previous = ''
  for (const [token] of text.matchAll(TOKEN)) {
    const closes = token === ']' || token === '}'
    if (closes) depth -= 1
    const followsOpening = previous === '[' || previous === '{'
    // `[]` and `{}` stay on one line.
    const endsEmpty = closes && followsOpening
    const beginsLine = closes || followsOpening || previous === ','
    if (beginsLine && !endsEmpty) pretty += `\n${'  '.repeat(depth)}`
    pretty += token === ':' ? ': ' : token
    if (token === '[' || token === '{') depth += 1
    if (depth > MAX_PRETTY_DEPTH || pretty.length > MAX_PRETTY_LENGTH) return undefined
    previous = token
  }
  return pretty
}

/** A string (with the colon after it if it is a key), a number, true, false or null. */
const KEY_OR_VALUE =
  /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
/** The most HTML elements for colours. More of them would make the page many times as large as the
 *  JSON. */
const MAX_HIGHLIGHTED = 5_000

export function highlightJson(pretty: string): Content {
  const parts: Content[] = []
  let copiedUpTo = 0
  let highlighted = 0
  for (const found of pretty.matchAll(KEY_OR_VALUE)) {
    if (++highlighted > MAX_HIGHLIGHTED) break
    const [whole, string, colon] = found
    const stringKind = colon === undefined ? 'string' : 'key'
    // Numbers, true, false and null share one colour.
    const kind = string === undefined ? 'number' : stringKind
    parts.push(
      pretty.slice(copiedUpTo, found.index),
      html`<span class="json-${kind}">${string ?? whole}</span>${colon}`,
    )
    copiedUpTo = found.index + whole.length
  }
  return [...parts, pretty.slice(copiedUpTo)]
}
