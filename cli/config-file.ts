/** `--config FILE`: settings from a file, as systemd (EnvironmentFile) and Docker (--env-file) read it. */
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { Refused } from '../errors.ts'

const OPTION = '--config'
/** Not \s: it includes the byte order mark, which would become a part of the first name. */
const COMMENT = /^[ \t]*([#;].*)?$/
/** A value with quotes inside, or with # outside quotes, means something else to each reader. */
const ASSIGNMENT = /^[ \t]*[A-Za-z_]\w*=("[^"\\]*"|'[^']*'|[^\s"'`#\\][^"'`#\\]*)?\s*$/

/** Removes `--config FILE` from the arguments, and returns the variables of the file that
 *  `environment` does not set. Undefined: the arguments do not name a file. Throws `Refused`. */
export function takeConfigFile(
  args: string[],
  environment: Record<string, string | undefined>,
): { args: string[]; variables: Record<string, string | undefined> } | undefined {
  const isOption = (arg: string): boolean => arg === OPTION || arg.startsWith(`${OPTION}=`)
  if (args.filter(isOption).length > 1) throw new Refused(`Use ${OPTION} only once.`)
  const index = args.findIndex(isOption)
  const inOneWord = args[index]?.startsWith(`${OPTION}=`)
  const file = inOneWord ? args[index]?.slice(OPTION.length + 1) : args[index + 1]
  // commander reports a missing file name.
  if (index === -1 || !file) return undefined
  return {
    args: args.toSpliced(index, inOneWord ? 1 : 2),
    // An empty variable counts as not set.
    variables: Object.fromEntries(
      Object.entries(readVariables(file)).filter(([name]) => !environment[name]),
    ),
  }
}

function readVariables(file: string): NodeJS.Dict<string> {
  const lines = readText(file).split(/\r?\n/)
  const isComment = (line: string): boolean => COMMENT.test(line)
  const invalid = lines.findIndex((line) => !isComment(line) && !ASSIGNMENT.test(line))
  // The line may have a secret, so it is not shown.
  if (invalid !== -1)
    throw new Refused(
      `Line ${invalid + 1} of ${file} is not a setting. Write NAME=value, with quotes around a value with ` +
        "# or \\: NAME='value'. Begin comments with #, on lines of their own.",
    )
  return parseEnv(lines.filter((line) => !isComment(line)).join('\n'))
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Refused(
      `The file of ${OPTION} cannot be read: ${(error as Error).message}. ` +
        'Name the file with the settings of the service.',
      { cause: error },
    )
  }
}
