/** Masks secrets in texts that are logged or stored. */
import { maskInvitation } from '../web/shared/invitation-path.ts'

const MAX_PATH_LENGTH = 500

/** A digit, a letter or `_`, also in the escapes of JSON (`\u005f`) and URLs (`%5F`). */
const WORD_CHARACTER = String.raw`(?:\w|(?:%|\\u00)(?:3\d|[46][1-9a-fA-F]|[57][\daA]|5[fF]))`
const UNDERSCORE = String.raw`(?:_|%5[fF]|\\u005[fF])`
/** `+`, `-`, `/` or `=`, also in escapes. */
const BASE64_SIGN = String.raw`(?:[+/=-]|\\/|(?:%|\\u00)(?:2[bdfBDF]|3[dD]))`
const KEY = new RegExp(`mst${UNDERSCORE}(${WORD_CHARACTER}{4})${WORD_CHARACTER}+`, 'g')
const SECRET = new RegExp(`whsec${UNDERSCORE}(?:${WORD_CHARACTER}|${BASE64_SIGN})+`, 'g')

export function maskSecrets(text: string): string {
  // Nearly no text has `mst` or `whsec`, and the search for a fixed string is many times faster
  // than a pattern.
  if (!text.includes('mst') && !text.includes('whsec')) return text
  return text.replace(KEY, 'mst_$1…').replace(SECRET, 'whsec_…')
}

/** The path without secrets, cut to `MAX_PATH_LENGTH`. */
export function loggablePath(path: string): string {
  return maskSecrets(maskInvitation(path)).slice(0, MAX_PATH_LENGTH)
}
