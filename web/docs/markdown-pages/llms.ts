/** The list of pages for language models, in the format of https://llmstxt.org. */
import type { Guide } from '../guides.ts'
import type { PageContext } from '../page.ts'
import { firstSentence } from '../parts.ts'
import { operationLines } from './pages.ts'
import { eventLines, joinBlocks, listItem, section } from './text.ts'

/** A title, a sentence, and links to the Markdown of pages, each with a description. A resource is
 *  a section with links to its operations, without a link to its own page. */
export function siteIndex(context: PageContext): string {
  const { api, link, contractNames, contractLink } = context
  const contracts = contractNames.map((name) => {
    const [kind = ''] = name.split(/[-.]/)
    return listItem(`[${name}](${contractLink(name)}): ${CONTRACT_CONTENTS[kind]}`)
  })
  const overviews = [
    listItem(`[API overview](${link('api')}): ${firstSentence(api.description)}`),
    listItem(`[Schemas](${link('schemas')}): All schemas with the constraints of their fields.`),
  ]
  return joinBlocks([
    `# ${api.title}`,
    `> ${firstSentence(api.description)}`,
    section('Guides', guideLines(context, 'guides')),
    section('API', overviews.join('\n')),
    ...api.resources.map((resource) =>
      section(resource.name, resource.description, operationLines(context, resource)),
    ),
    section(
      'Events',
      listItem(`[Overview](${link('webhooks')}): ${firstSentence(api.webhooks.description)}`) +
        `\n${eventLines(context, api.events)}`,
    ),
    section('Contracts', contracts.join('\n')),
    // In this format, readers that need a shorter context skip the section named Optional.
    section('Optional', guideLines(context, 'internals'), guideLines(context, 'changelog')),
  ])
}

const CONTRACT_CONTENTS: Record<string, string> = {
  openapi: 'The requests and responses of all operations.',
  asyncapi: 'The bodies and headers of all events.',
}

function guideLines({ guides, link }: PageContext, group: Guide['group']): string {
  return guides
    .filter((guide) => guide.group === group)
    .map(({ id, title, text }) => listItem(`[${title}](${link(id)}): ${firstSentence(text)}`))
    .join('\n')
}
