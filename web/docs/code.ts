/** Blocks of code, alone and in tabs for several languages. */
import { codeFrame } from '../shared/code-block.ts'
import { type Html, html } from '../shared/html.ts'
import { highlight } from './highlight.ts'

export interface CodeSample {
  language: string
  code: string
}

/** The labels of tabs. client/code.css has a selector for each language. */
const NAMES: Record<string, string> = {
  curl: 'curl',
  client: 'Client',
  typescript: 'TypeScript',
  python: 'Python',
  php: 'PHP',
  go: 'Go',
  ruby: 'Ruby',
  java: 'Java',
}

export function highlightedCode(code: string, language: string, label = 'Code'): Html {
  return codeFrame(
    label,
    highlight(code.trimEnd(), language),
    html`<button type="button" class="button copy" data-copy>Copy</button>`,
  )
}

export function exampleValue(value: unknown, label?: string): Html {
  return highlightedCode(JSON.stringify(value, null, 2), 'json', label)
}

/** `id` is unique on its page. client/docs.js selects the same language on all pages.
 *  Without JavaScript, all panels are visible. */
export function languageTabs(id: string, label: string, samples: CodeSample[]): Html {
  return html`<div class="tabs">
    <div class="tab-list" role="tablist" aria-label="${label}">
      ${samples.map(({ language }, index) => languageTab(`${id}-${language}`, language, index === 0))}
    </div>
    ${samples.map((sample) => languagePanel(`${id}-${sample.language}`, label, sample))}
  </div>`
}

function languageTab(id: string, language: string, isSelected: boolean): Html {
  return html`<button type="button" role="tab" id="${id}-tab" aria-controls="${id}"
    aria-selected="${String(isSelected)}" data-language="${language}">${NAMES[language]}</button>`
}

function languagePanel(id: string, label: string, { language, code }: CodeSample): Html {
  const block = highlightedCode(code, language, `${label}: ${NAMES[language]}`)
  return html`<div class="tab-panel" role="tabpanel" id="${id}" aria-labelledby="${id}-tab"
    data-language="${language}">
    ${block}
  </div>`
}
