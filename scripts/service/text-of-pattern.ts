/** Writes a text that matches a regular expression, as an example where a document has none.
 *  fast-check would not do: its texts are hard to read, and it is a development package, which
 *  servers do not have. */

/** Undefined if the pattern is invalid, or if `Writer` finds no text that matches, for example
 *  because it does not support lookaheads. */
export function textOfPattern(pattern: string): string | undefined {
  try {
    const text = new Writer(pattern).alternatives()
    return new RegExp(pattern).test(text) ? text : undefined
  } catch {
    return undefined
  }
}

/** The text to write for each escape, for example `\d`. */
const ESCAPES: Record<string, string> = {
  d: '1',
  w: 'a',
  s: ' ',
  D: 'a',
  W: '-',
  S: 'a',
  n: '\n',
  t: '\t',
}
const UNSUPPORTED = new Error('unsupported')
/** Characters to try for a class whose first character does not fit, such as a negated class. */
const CANDIDATES = 'aA1-_ ./:'

class Writer {
  private at = 0
  private readonly pattern: string

  constructor(pattern: string) {
    this.pattern = pattern
  }

  /** Reads all alternatives, up to `)` or the end. Returns a text for the first one. */
  alternatives(): string {
    const first = this.sequence()
    while (this.peek() === '|') {
      this.at += 1
      this.sequence()
    }
    return first
  }

  private sequence(): string {
    let text = ''
    while (this.at < this.pattern.length && !'|)'.includes(this.peek())) {
      const piece = this.atom()
      text += piece.repeat(this.count())
    }
    return text
  }

  private atom(): string {
    const sign = this.next()
    if (sign === '^' || sign === '$') return ''
    if (sign === '.') return 'a'
    if (sign === '[') return this.characterClass()
    if (sign === '(') return this.group()
    return sign === '\\' ? this.escape() : sign
  }

  private group(): string {
    if (this.peek() === '?') {
      const prefix = /^\?(:|<[A-Za-z]\w*>)/.exec(this.pattern.slice(this.at))?.[0]
      if (prefix === undefined) throw UNSUPPORTED
      this.at += prefix.length
    }
    const text = this.alternatives()
    this.at += 1
    return text
  }

  private escape(): string {
    const sign = this.next()
    if (sign === 'b') return ''
    if (sign === 'x' || sign === 'u') {
      const length = sign === 'x' ? 2 : 4
      const code = Number.parseInt(this.pattern.slice(this.at, this.at + length), 16)
      this.at += length
      return String.fromCharCode(code)
    }
    if (/[1-9pPk]/.test(sign)) throw UNSUPPORTED
    return ESCAPES[sign] ?? sign
  }

  private characterClass(): string {
    const start = this.at - 1
    const isNegated = this.peek() === '^'
    while (this.peek() !== ']') {
      if (this.at >= this.pattern.length) throw UNSUPPORTED
      this.at += this.peek() === '\\' ? 2 : 1
    }
    this.at += 1
    const source = this.pattern.slice(start, this.at)
    if (!isNegated) {
      const first = source[1] === '\\' ? (ESCAPES[source[2] ?? ''] ?? source[2]) : source[1]
      if (first !== undefined && new RegExp(source).test(first)) return first
    }
    const found = [...CANDIDATES].find((sign) => new RegExp(source).test(sign))
    if (found === undefined) throw UNSUPPORTED
    return found
  }

  /** Reads the quantifier. Returns the least number of repetitions, but 1 instead of 0 if the
   *  quantifier allows 1. */
  private count(): number {
    const rest = this.pattern.slice(this.at)
    const quantifier = /^([*+?]|\{(\d+)(?:,(\d*))?\})\??/.exec(rest)
    if (!quantifier) return 1
    this.at += quantifier[0].length
    const [text, , least, most] = quantifier
    if (least === undefined) return 1
    const isNever = Number(most || least) === 0 && !text.includes(',}')
    return Math.max(Number(least), isNever ? 0 : 1)
  }

  private peek(): string {
    return this.pattern[this.at] ?? ''
  }

  private next(): string {
    this.at += 1
    return this.pattern[this.at - 1] ?? ''
  }
}
