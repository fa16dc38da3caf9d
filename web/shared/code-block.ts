import { type Content, type Html, html } from './html.ts'

/** A block of code that the keyboard can scroll. `label` names it for screen readers. `code` may be
 *  HTML. */
export function codeFrame(label: string, code: Content, copyButton: Html): Html {
  return html`<div class="code-block">
    ${copyButton}
    <pre tabindex="0" role="group" aria-label="${label}"><code>${code}</code></pre>
  </div>`
}
