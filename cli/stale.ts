/** The option `--allow-stale` of the commands that use generated/. */
export const ALLOW_STALE_OPTION = '--allow-stale'

/** `action` is what the command does, for example `start`. */
export function describeAllowStale(action: string): string {
  return `${action} even if a contract was changed after generated/ was written`
}
