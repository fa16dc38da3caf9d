/** The page with the description of a whole contract. */
import { html } from '../../shared/html.ts'
import type { DocsPage, PageContext } from '../page.ts'
import { firstSentence } from '../parts.ts'

export function overviewPage(context: PageContext, title: string, description: string): DocsPage {
  const { body, headings } = context.render(description)
  return {
    title,
    summary: firstSentence(description),
    headings,
    body: html`<div class="prose">${body}</div>`,
  }
}
