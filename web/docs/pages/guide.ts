/** The page of a guide, which is written by hand. Below the text of some guides, the page has a
 *  reference that is generated from the contracts. */
import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { type Html, html } from '../../shared/html.ts'
import { type Guide, linkedFile } from '../guides.ts'
import type { Heading } from '../markdown.ts'
import type { DocsPage, PageContext } from '../page.ts'
import { firstSentence } from '../parts.ts'
import { errorReference, listReference, rateLimitReference } from './reference.ts'

interface Reference {
  heading: Heading
  render(context: PageContext): Html
}

/** The reference below the text of a guide, by the guide's ID. */
const REFERENCES: Record<string, Reference> = {
  'guides/errors': {
    heading: { level: 2, id: 'statuses', text: 'Every status' },
    render: errorReference,
  },
  'guides/lists': {
    heading: { level: 2, id: 'every-list', text: 'Every list' },
    render: listReference,
  },
  'guides/rate-limits': {
    heading: { level: 2, id: 'headers', text: 'The headers' },
    render: rateLimitReference,
  },
}

/** In the text of guides, this URL stands for the URL of the service. */
export const EXAMPLE_URL = 'https://api.example.com'

export function guidePage(context: PageContext, guide: Guide, root: string): DocsPage {
  const text = guide.text.replaceAll(EXAMPLE_URL, context.options.baseUrl)
  const { body, title, headings } = context.render(text, {
    resolve: (href) => resolveLink(context, guide, href),
    readCode: (href) => readFileSync(join(root, linkedFile(guide, href)), 'utf8'),
  })
  const reference = REFERENCES[guide.id]
  return {
    title: title ?? guide.title,
    summary: firstSentence(guide.text),
    headings: reference ? [...headings, reference.heading] : headings,
    body: html`<div class="prose">${body}</div>
      ${reference && html`<h2 id="${reference.heading.id}">${reference.heading.text}</h2>`}
      ${reference?.render(context)}`,
  }
}

/** The URL for a relative link in a guide. Undefined for files that only readers of the repository
 *  have. */
export function resolveLink(context: PageContext, guide: Guide, href: string): string | undefined {
  const file = linkedFile(guide, href)
  const target = context.guides.find((one) => one.file === file)
  if (target) return context.link(target.id, href.split('#')[1])
  if (/^(openapi|asyncapi)\.yaml$/.test(file)) return context.contractLink(file)
  // A wrong link within docs/ stays a link. A test then finds that it is broken.
  return posix.dirname(file).startsWith('docs') && file.endsWith('.md') ? href : undefined
}
