/** A proxy that changes the pages of lists that a program reads. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Page {
  data: { id: string }[]
  meta: { complete_until: string | null }
}

export interface PageProxy extends AsyncDisposable {
  url: string
  /** Changes a page after Muster has sent it, and before the program gets it. `isFirst` is true for
   *  the first page of a list. */
  onPage: (page: Page, isFirst: boolean) => void | Promise<void>
}

/** Pages have at most two records, so that few records fill several pages. */
export async function startPageProxy(target: string): Promise<PageProxy> {
  const server = createServer(async (incoming, outgoing) => {
    const url = new URL(target + incoming.url)
    if (url.searchParams.has('page[size]')) url.searchParams.set('page[size]', '2')
    const { authorization = '' } = incoming.headers
    const response = await fetch(url, { headers: { authorization } })
    const body = (await response.json()) as Page
    if ('meta' in body) await proxy.onPage(body, !url.searchParams.has('page[after]'))
    outgoing.writeHead(response.status).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy: PageProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    onPage: () => undefined,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return proxy
}

/** A service that cannot tell until when its lists are complete. */
export const cannotTell: PageProxy['onPage'] = ({ meta }) => {
  meta.complete_until = null
}

/** A service that cannot tell it for the first page of a list, and can for later ones. */
export const cannotTellFirst: PageProxy['onPage'] = ({ meta }, isFirst) => {
  meta.complete_until = isFirst ? null : new Date().toISOString()
}
