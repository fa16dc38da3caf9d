/** Writes a request of a contract test as a curl command. */
import { authorizationOf, type Request } from '../scripts/contract/request.ts'
import { quoteForShell } from '../web/shared/shell.ts'

/** A line for a POSIX shell. `$KEY` stands for `mainKey`, the Full Access key of the tested
 *  account, and `$OTHER_KEY` for every other API key, because keys must not appear in reports. */
export function toContractCurl(url: string, request: Request, mainKey: string): string {
  const { method, path, headers, body, key } = request
  const options = [`-X ${method}`, quoteForShell(url + path)]
  if (key !== null) {
    const variable = key === mainKey ? '$KEY' : '$OTHER_KEY'
    options.push(`-H "Authorization: ${authorizationOf(request, variable)}"`)
  }
  for (const [name, value] of Object.entries(headers))
    options.push(`-H ${quoteForShell(value === '' ? `${name};` : `${name}: ${value}`)}`)
  const curl = `curl -sS -i --globoff ${options.join(' ')}`
  if (body === undefined) return curl
  const pieces = body.split(LONG_REPEAT).filter((piece) => piece !== '')
  const hasLongRepeat = pieces.some(isLongRepeat)
  if (!hasLongRepeat) return `${curl} --data-raw ${quoteForShell(body)}`
  return `{ ${pieces.map(toPrintf).join(' ')} } | ${curl} --data-binary @-`
}

/** At least 100 times `x`, `a` or U+1F600: the tests repeat these characters. The shell generates
 *  such text, to keep the command short. The outer group makes `split` keep the matches. */
const LONG_REPEAT = /(x{100,}|a{100,}|(?:\u{1F600}){100,})/u

function isLongRepeat(text: string): boolean {
  return LONG_REPEAT.exec(text)?.[0] === text
}

function toPrintf(piece: string): string {
  if (!isLongRepeat(piece)) return `printf %s ${quoteForShell(piece)};`
  const characters = [...piece]
  // Prints the character once for each number of `seq`: `%.0s` prints nothing of the number.
  return `printf '${characters[0]}%.0s' $(seq ${characters.length});`
}
