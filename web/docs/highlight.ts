/** Code with its parts marked by classes. */
import { createRequire } from 'node:module'
import { escapeHtml, type Html, raw } from '../shared/html.ts'

// Not by `import`: its types bring those of browsers with them, and the whole program would be checked against both.
const require = createRequire(import.meta.url)
const highlighter = require('highlight.js/lib/core') as {
  registerLanguage(name: string, language: unknown): void
  highlight(code: string, options: { language: string }): { value: string }
}

const LANGUAGES = ['bash', 'go', 'java', 'json', 'php', 'python', 'ruby', 'typescript', 'yaml']
for (const name of LANGUAGES)
  highlighter.registerLanguage(name, require(`highlight.js/lib/languages/${name}`))

/** What else a block of code in Markdown may call them. */
const ALIASES: Record<string, string> = { sh: 'bash', curl: 'bash', ts: 'typescript' }

/** A language that we do not know is left as it is. */
export function highlight(code: string, language: string): Html {
  const name = ALIASES[language] ?? language
  return raw(
    LANGUAGES.includes(name)
      ? highlighter.highlight(code, { language: name }).value
      : escapeHtml(code),
  )
}
