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

/** What the tests repeat in JSON text. The last two are in the largest record. */
const REPEATED = ['x', 'a', '\u{1F600}', 'é', '\\u0001']

/** One of them at least 100 times. The shell generates such text, to keep the command short. The outer
 *  group makes `split` keep the matches. */
const LONG_REPEAT = new RegExp(
  `(${REPEATED.map((text) => `(?:${text.replace('\\', '\\\\')}){100,}`).join('|')})`,
  'u',
)

function isLongRepeat(text: string): boolean {
  return LONG_REPEAT.exec(text)?.[0] === text
}

function toPrintf(piece: string): string {
  const repeated = isLongRepeat(piece) && REPEATED.find((text) => piece.startsWith(text))
  if (!repeated) return `printf %s ${quoteForShell(piece)};`
  // Prints the text once for each number of `seq`: `%.0s` prints nothing of the number.
  const format = repeated.replace('\\', '\\\\')
  return `printf '${format}%.0s' $(seq ${piece.length / repeated.length});`
}
