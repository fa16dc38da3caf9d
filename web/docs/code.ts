/** Blocks of code, alone and in tabs, one for each language. */
import { codeFrame } from '../shared/code-block.ts'
import { type Html, html } from '../shared/html.ts'
import { highlight } from './highlight.ts'

export interface Sample {
  language: string
  code: string
}

/** As people write them. The ones with a tab are in the selectors of client/code.css, too. */
const NAMES: Record<string, string> = {
  curl: 'curl',
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
    html`<button type="button" class="copy" data-copy>Copy</button>`,
  )
}

export function exampleValue(value: unknown, label?: string): Html {
  return highlightedCode(JSON.stringify(value, null, 2), 'json', label)
}

/** `id` is unique on its page. Which tab is open is one choice for the whole site: see client/docs.js. Without JavaScript all are. */
export function languageTabs(id: string, label: string, samples: Sample[]): Html {
  const [first] = samples
  return html`<div class="tabs">
<div class="tab-list" role="tablist" aria-label="${label}">${samples.map(
    ({ language }) =>
      html`<button type="button" role="tab" id="${id}-${language}-tab" aria-controls="${id}-${language}" aria-selected="${language === first?.language ? 'true' : 'false'}" data-language="${language}">${NAMES[language]}</button>`,
  )}</div>
${samples.map(
  ({ language, code }) =>
    html`<div class="tab-panel" role="tabpanel" id="${id}-${language}" aria-labelledby="${id}-${language}-tab" data-language="${language}">${highlightedCode(code, language, `${label}: ${NAMES[language]}`)}</div>`,
)}
</div>`
}
