/** A page of the documentation, and the data and functions for rendering it. */
import type { Html } from '../shared/html.ts'
import type { Guide } from './guides.ts'
import type { Heading, MarkdownOptions, Rendered } from './markdown.ts'
import type { SchemaContext } from './schema.ts'

export interface SiteOptions {
  /** The URL at which clients reach the service, for the samples. Without a trailing slash. */
  baseUrl: string
  /** `server`: on the API's host, with forms to try operations. `static`: for any host. */
  edition: 'server' | 'static'
  /** The folder with the contracts, docs/ and CHANGELOG.md. Default: this copy of Muster. */
  root?: string
  /** The limits of the running service. */
  limits?: ServiceLimits
}

/** They apply to each user. An operator can set other rate limits for accounts and users. */
export interface ServiceLimits {
  requestsPerMinute: number
  requestsInFlight: number
}

export interface DocsPage {
  title: string
  /** For search engines. */
  summary: string
  body: Html
  /** Links to the parent pages. */
  crumbs?: Html
  headings?: Heading[]
  /** Scripts in addition to those that every page has. */
  scripts?: string[]
  /** The page has a second column. */
  isWide?: boolean
}

/** Everything that is needed to render a page. URLs are relative to that page. */
export interface PageContext extends SchemaContext {
  options: SiteOptions
  guides: Guide[]
  /** The URL of another page. Throws if that page does not exist. */
  link(id: string, fragment?: string): string
  /** The names of the served contracts, for example `openapi.yaml`. */
  contractNames: string[]
  /** The URL of a contract, for example `openapi.yaml`. */
  contractLink(name: string): string
  /** Renders Markdown. Names of operations and events in code link to their pages. */
  render(text: string, options?: Pick<MarkdownOptions, 'resolve' | 'readCode'>): Rendered
  /** The URL of the service's root. Pages of the `static` edition do not use this URL. */
  rootLink: string
}
