import { createRequire } from 'node:module'
import { escapeHtml, type Html, raw } from '../shared/html.ts'

// `import` would add the DOM types of highlight.js to the whole program.
const require = createRequire(import.meta.url)
const highlighter = require('highlight.js/lib/core') as {
  registerLanguage(name: string, language: unknown): void
  highlight(code: string, options: { language: string }): { value: string }
}

const LANGUAGES = ['bash', 'go', 'java', 'json', 'php', 'python', 'ruby', 'typescript', 'yaml']
for (const name of LANGUAGES)
  highlighter.registerLanguage(name, require(`highlight.js/lib/languages/${name}`))

/** Other names of languages, in Markdown and in the tabs of code samples. */
const ALIASES: Record<string, string> = {
  sh: 'bash',
  curl: 'bash',
  client: 'typescript',
  js: 'typescript',
  ts: 'typescript',
}

export function highlight(code: string, language: string): Html {
  const name = ALIASES[language] ?? language
  return raw(
    LANGUAGES.includes(name)
      ? highlighter.highlight(code, { language: name }).value
      : escapeHtml(code),
  )
}
