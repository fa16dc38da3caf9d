/** The token of a one-time link is a secret. */
export function maskInvitation(path: string): string {
  return path.replace(/^(\/console\/invitation\/).*/i, '$1[secret]')
}
