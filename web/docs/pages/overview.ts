/** What a contract says of itself. */
import { html } from '../../shared/html.ts'
import { firstSentence } from '../layout.ts'
import type { Page, PageContext } from '../site.ts'

export function overviewPage(context: PageContext, title: string, description: string): Page {
  const { body, headings } = context.render(description)
  return {
    title,
    summary: firstSentence(description),
    headings,
    body: html`<div class="prose">${body}</div>`,
  }
}
