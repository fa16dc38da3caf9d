/** The search index for browsers. */
import { STATUS_CODES } from 'node:http'
import MiniSearch from 'minisearch'
import type { Schema } from '../../scripts/model/schema.ts'
import type { Api, ApiOperation } from './api.ts'
import { OPTIONS } from './client/search-words.js'
import type { Guide } from './guides.ts'
import { renderMarkdown } from './markdown.ts'

interface Entry {
  id: number
  /** The ID of a page with an optional fragment, for example `guides/lists#filters`. */
  target: string
  kind: 'Guide' | 'Operation' | 'Event' | 'Resource' | 'Schema' | 'Status' | 'Internals'
  title: string
  /** Shown below the title. */
  hint: string
  /** Names of operations, paths and fields. */
  names: string
  text: string
}

/** JSON for `MiniSearch.loadJSON` with `OPTIONS`. */
export function searchIndex(api: Api, guides: Guide[]): string {
  const index = new MiniSearch<Entry>(OPTIONS)
  const entries: Omit<Entry, 'id'>[] = [
    ...guides.flatMap(guideEntries),
    ...statusEntries(api, guides),
    ...api.operations.map((operation) => operationEntry(api, operation)),
    ...api.events.map(({ type, summary, description }) => ({
      target: `events/${type}`,
      kind: 'Event' as const,
      title: type,
      hint: summary,
      names: type,
      text: description,
    })),
    ...api.resources.map(({ name, slug, description }) => ({
      target: `resources/${slug}`,
      kind: 'Resource' as const,
      title: name,
      hint: description,
      names: slug,
      text: '',
    })),
    ...[...api.schemas].map(([name, schema]) => ({
      target: `schemas#${name}`,
      kind: 'Schema' as const,
      title: name,
      hint: schema.description ?? '',
      names: [name, ...fieldNames(schema)].join(' '),
      text: '',
    })),
  ]
  index.addAll(entries.map((entry, id) => ({ id, ...entry })))
  return JSON.stringify(index)
}

/** An entry for each status from 300, with a link to the status in the guide to errors. */
function statusEntries({ operations }: Api, guides: Guide[]): Omit<Entry, 'id'>[] {
  if (!guides.some(({ id }) => id === 'guides/errors')) return []
  const errors = operations.flatMap(({ responses }) =>
    responses.filter(({ status }) => status >= 300),
  )
  return [...new Map(errors.map((response) => [response.status, response]))].map(
    ([status, { description }]) => ({
      target: `guides/errors#status-${status}`,
      kind: 'Status',
      title: `${status} ${STATUS_CODES[status]}`,
      hint: description.split('\n')[0] ?? '',
      names: '',
      text: description,
    }),
  )
}

function operationEntry(
  api: Api,
  { id, method, path, summary, description, parameters, body }: ApiOperation,
): Omit<Entry, 'id'> {
  const fields = body ? fieldNames(api.follow(body.schema.value)) : []
  return {
    target: `operations/${id}`,
    kind: 'Operation',
    title: summary,
    hint: `${method} ${path}`,
    names: [id, path, ...parameters.map(({ name }) => name), ...fields].join(' '),
    text: description,
  }
}

function fieldNames({ properties = {} }: Schema): string[] {
  return Object.keys(properties)
}

/** One entry for the guide, and one for each section, so that results can link to sections. */
function guideEntries({ id, title, text, group }: Guide): Omit<Entry, 'id'>[] {
  const kind: Entry['kind'] = group === 'internals' ? 'Internals' : 'Guide'
  const { headings } = renderMarkdown(text)
  const [intro = '', ...sections] = text
    .replace(/^# .*$/m, '')
    .replace(/^(```|~~~).*$/gm, '')
    .split(/^##+ .*$/m)
  const [summary = ''] = intro.trim().split('\n\n')
  return [
    {
      target: id,
      kind,
      title,
      // Without the Markdown syntax of code, bold text and links, and without the targets of links.
      hint: summary.replace(/[`*]|\]\(.*?\)|\[/g, ''),
      names: id,
      text: withoutMarkup(intro),
    },
    ...sections.map((section, index) => ({
      target: `${id}#${headings[index]?.id}`,
      kind,
      title: headings[index]?.text ?? title,
      hint: title,
      names: '',
      text: withoutMarkup(section),
    })),
  ]
}

function withoutMarkup(markdown: string): string {
  return markdown.replace(/[[\]()#*`|]/g, ' ')
}
