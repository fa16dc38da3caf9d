/** A request to the API as a command for a POSIX shell. The key is none: it is taken from the environment, as in the documentation. */

export interface ShellRequest {
  method: string
  /** With the query. */
  url: string
  /** As it is sent: JSON. */
  body: string | null
}

export function curlCommand({ method, url, body }: ShellRequest): string {
  // Without -g, curl would take the brackets of `page[size]` for a pattern.
  const brackets = /[[\]{}]/.test(url) ? '-g ' : ''
  const verb = method === 'HEAD' ? '--head ' : method === 'GET' || (method === 'POST' && body !== null) ? '' : `-X ${method} `
  const parts = [`curl ${brackets}${verb}${quoted(url)}`, '-H "Authorization: Bearer $MUSTER_API_KEY"']
  // Raw: what begins with an @ would be read as the name of a file.
  if (body !== null) parts.push("-H 'Content-Type: application/json'", `--data-raw ${quoted(body)}`)
  return parts.join(' \\\n  ')
}

/** One word of a command line, whatever is in it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
