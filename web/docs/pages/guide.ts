/** A hand-written page, with what the contracts add to it. */
import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { type Html, html } from '../../shared/html.ts'
import { fileBehind, type Guide } from '../guides.ts'
import { firstSentence } from '../layout.ts'
import type { Heading } from '../markdown.ts'
import type { Page, PageContext } from '../site.ts'
import { errorReference, listReference, rateLimitReference } from './reference.ts'

/** What is generated below the text of a guide, by the guide's id. */
const REFERENCES: Record<string, { heading: Heading; render(context: PageContext): Html }> = {
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

/** Where the service is, in the text of guides. */
const PLACEHOLDER = 'https://api.example.com'

export function guidePage(context: PageContext, guide: Guide, root: string): Page {
  const resolve = (href: string): string | undefined => {
    const file = fileBehind(guide, href)
    const fragment = href.split('#')[1]
    const target = context.guides.find((known) => known.file === file)
    if (target) return context.link(target.id, fragment)
    if (/^(openapi|asyncapi)\.yaml$/.test(file)) return context.contractLink(file)
    // A slip in docs/ shows as a link that leads nowhere, which a test finds. Elsewhere, files are for those who have the repository.
    return posix.dirname(file).startsWith('docs') && file.endsWith('.md') ? href : undefined
  }
  // So that what readers copy goes to this service.
  const text = guide.text.replaceAll(PLACEHOLDER, context.options.baseUrl)
  const { body, title, headings } = context.render(text, {
    resolve,
    readCode: (href) => readFileSync(join(root, fileBehind(guide, href)), 'utf8'),
  })
  const reference = REFERENCES[guide.id]
  return {
    title: title ?? guide.title,
    summary: firstSentence(guide.text.replace(/^# .*$/m, '')),
    headings: reference ? [...headings, reference.heading] : headings,
    body: html`<div class="prose">${body}</div>${reference && html`<h2 id="${reference.heading.id}">${reference.heading.text}</h2>${reference.render(context)}`}`,
  }
}
