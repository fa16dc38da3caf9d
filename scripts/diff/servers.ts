import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { type Path, valueAt } from '../model/source.ts'
import { type Change, type Subject, toChange } from './change.ts'

interface Server {
  url: string
  variables?: Record<string, { default?: string; enum?: string[] }>
}

/** Compares the URLs below which clients call the operation. */
export function compareServers(subject: Subject, old: Operation, now: Operation): Change[] {
  const [base, revision] = [subject.base, subject.revision]
  const [before, after] = [listUrls(base, old), listUrls(revision, now)]
  const oldPlace = { source: base.openapi, path: serversPath(base, old) }
  const newPlace = { source: revision.openapi, path: serversPath(revision, now) }
  return [
    ...before
      .filter((url) => !after.includes(url))
      .map((url) => {
        const part = { name: `the server ${url}`, place: oldPlace, isGone: true }
        return toChange(subject, part, 'api-server-removed', 'is gone')
      }),
    ...after
      .filter((url) => !before.includes(url))
      .map((url) => {
        const part = { name: `the server ${url}`, place: newPlace }
        return toChange(subject, part, 'api-server-added', 'is new')
      }),
  ]
}

/** Where the document declares the servers of the operation. OpenAPI 3.0.3: the servers of an
 *  operation override those of its path, which override those of the document. */
function serversPath({ openapi }: Contract, { place: { path } }: Operation): Path {
  const candidates = [path, path.slice(0, -1), []].map((owner) => [...owner, 'servers'])
  const isThere = (candidate: Path): boolean => valueAt(openapi.root, candidate) !== undefined
  return candidates.find(isThere) ?? ['servers']
}

/** The URLs without the slash at their end, except `/`. */
function listUrls(contract: Contract, operation: Operation): string[] {
  const servers = valueAt(contract.openapi.root, serversPath(contract, operation)) as
    | Server[]
    | undefined
  return (servers?.length ? servers : [{ url: '/' }])
    .flatMap(listVariants)
    .map((url) => url.replace(/(?<=.)\/$/, ''))
}

/** The URL with every combination of the values of its variables. */
function listVariants({ url, variables = {} }: Server): string[] {
  let urls = [url]
  for (const [name, variable] of Object.entries(variables)) {
    const values = variable.enum ?? [variable.default ?? '']
    urls = urls.flatMap((each) => values.map((value) => each.replaceAll(`{${name}}`, value)))
  }
  return urls
}
