/** Writes a request of a contract test as a curl command. */
import type { Request } from '../scripts/contract/request.ts'
import { quoteForShell } from '../web/shared/shell.ts'

/** A line for a POSIX shell. `$KEY` stands for `runKey`, the API key of the run, and `$OTHER_KEY`
 *  for any other, because keys must not appear in reports. */
export function toContractCurl(
  url: string,
  { method, path, headers, body, key }: Request,
  runKey: string,
): string {
  const options = [`-X ${method}`, quoteForShell(url + path)]
  if (key !== null) {
    const variable = key === runKey ? '$KEY' : '$OTHER_KEY'
    options.push(`-H "Authorization: Bearer ${variable}"`)
  }
  for (const [name, value] of Object.entries(headers))
    options.push(`-H ${quoteForShell(value === '' ? `${name};` : `${name}: ${value}`)}`)
  const curl = `curl -sS -i --globoff ${options.join(' ')}`
  if (body === undefined) return curl
  const pieces = body.split(LONG_RUN).filter((piece) => piece !== '')
  const hasLongRun = pieces.some(isLongRun)
  if (!hasLongRun) return `${curl} --data-raw ${quoteForShell(body)}`
  return `{ ${pieces.map(toPrintf).join(' ')} } | ${curl} --data-binary @-`
}

/** A run of one character that the shell generates, to keep the command short. The tests repeat
 *  these characters. The outer group makes `split` keep the runs. */
const LONG_RUN = /(x{100,}|a{100,}|(?:\u{1F600}){100,})/u

function isLongRun(text: string): boolean {
  return LONG_RUN.exec(text)?.[0] === text
}

function toPrintf(piece: string): string {
  if (!isLongRun(piece)) return `printf %s ${quoteForShell(piece)};`
  const characters = [...piece]
  // Prints the character once for each number.
  return `printf '${characters[0]}%.0s' $(seq ${characters.length});`
}
