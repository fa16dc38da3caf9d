/** The Markdown of all pages except the home page and the pages of operations. */
import { readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { Schema } from '../../../scripts/model/schema.ts'
import type { ApiEvent, ApiResource } from '../api.ts'
import { type Guide, linkedFile } from '../guides.ts'
import type { PageContext } from '../page.ts'
import { EXAMPLE_URL, resolveLink } from '../pages/guide.ts'
import { findRecord } from '../pages/resource.ts'
import { deprecationNote } from '../parts.ts'
import { formatType, listConstraints } from '../schema.ts'
import { fieldLines } from './fields.ts'
import {
  codeBlock,
  eventLines,
  exampleBlock,
  inlineText,
  joinBlocks,
  listItem,
  section,
} from './text.ts'

/** A list item that consists only of a link to the source file of a receiver or of the cookbook. */
const SOURCE_FILE_ITEM = /^- \[([^\]]*)\]\((\S*\/(?:receivers|cookbook)\/\S*)\)$/gm
/** A link to another page or file: its URL begins with neither a scheme nor `#`. */
const RELATIVE_LINK = /\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]*)\)/g

/** The text of the guide. Its links lead to the Markdown of other pages. The text of the
 *  linked file replaces each `SOURCE_FILE_ITEM`. */
export function guideMarkdown(context: PageContext, guide: Guide, root: string): string {
  return guide.text
    .replaceAll(EXAMPLE_URL, context.options.baseUrl)
    .replace(SOURCE_FILE_ITEM, (_, label, href) => {
      const code = readFileSync(join(root, linkedFile(guide, href)), 'utf8')
      return `${label}:\n\n${codeBlock(code, extname(href).slice(1))}\n`
    })
    .replace(RELATIVE_LINK, (_, label, href) => {
      const target = resolveLink(context, guide, href)
      return target === undefined ? label : `[${label}](${target})`
    })
}

export function overviewMarkdown(title: string, description: string): string {
  return joinBlocks([`# ${title}`, description])
}

export function resourceMarkdown(context: PageContext, resource: ApiResource): string {
  const record = findRecord(context.api, resource)
  return joinBlocks([
    `# ${resource.name}`,
    resource.description,
    section('Operations', operationLines(context, resource)),
    section('Events', eventLines(context, resource.events)),
    record &&
      section(
        'The record',
        fieldLines({ ...context, isOutput: true }, record.schema.value).join('\n'),
        exampleBlock(record.example),
      ),
  ])
}

export function operationLines({ link }: PageContext, { operations }: ApiResource): string {
  return operations
    .map(({ id, method, path, summary }) =>
      listItem(`[${id}](${link(`operations/${id}`)}): ${summary}, \`${method} ${path}\``),
    )
    .join('\n')
}

export function eventMarkdown(context: PageContext, event: ApiEvent): string {
  const { link } = context
  const { type, summary, description, payload, headers, example, recordOperation } = event
  const outputContext = { ...context, isOutput: true }
  const triggers = event.triggers.map(({ id, summary }) =>
    listItem(`[${id}](${link(`operations/${id}`)}): ${summary}`),
  )
  return joinBlocks([
    `# ${type}`,
    inlineText(deprecationNote(event.deprecation)),
    `**${summary}**`,
    description,
    section(
      'Triggered by',
      triggers.join('\n'),
      event.isFromSystem ? 'The system itself, in the background.' : undefined,
      event.isSubscribable || event.isOperational
        ? undefined
        : 'A user who tests a webhook in the web interface.',
    ),
    recordOperation &&
      section(
        'The record',
        `Fetch it with \`resource.id\`: [${recordOperation.id}](${link(`operations/${recordOperation.id}`)}).`,
      ),
    section('Body', fieldLines(outputContext, payload.value).join('\n'), exampleBlock(example)),
    section('Headers', fieldLines(outputContext, headers.value).join('\n')),
  ])
}

export function schemasMarkdown(context: PageContext): string {
  return joinBlocks([
    '# Schemas',
    'The schemas of requests and responses.',
    ...[...context.api.schemas].map(([name, schema]) => schemaSection(context, name, schema)),
  ])
}

function schemaSection(context: PageContext, name: string, schema: Schema): string {
  return joinBlocks([
    `## ${name}`,
    inlineText(formatType(context, schema)),
    schema.description,
    listConstraints(context, schema)
      .map((rule) => listItem(inlineText(rule)))
      .join('\n'),
    schema.additionalProperties === false && 'Unknown fields get 422.',
    fieldLines(context, schema).join('\n'),
  ])
}
