/** Sends the requests of the client that orval generates. */
import { headers, url } from './report'

interface Options extends RequestInit {
  baseUrl?: string
}

export async function send<Result>(path: string, options: Options = {}): Promise<Result> {
  const { baseUrl = url, ...request } = options
  const response = await fetch(baseUrl + path, {
    ...request,
    headers: { ...headers, ...request.headers },
  })
  const text = await response.text()
  const data = text === '' ? undefined : JSON.parse(text)
  return { data, status: response.status, headers: response.headers } as Result
}
