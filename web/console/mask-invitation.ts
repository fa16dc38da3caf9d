/** For the log, which must not load the console. */

/** Invitation tokens are secrets. */
export function maskInvitation(path: string): string {
  return path.replace(/^(\/console\/invitation\/).*/i, '$1[secret]')
}
