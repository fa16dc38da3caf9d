/** The option `--allow-stale` of the commands that use generated/. */
import { hasPlainDocument } from '../scripts/model/document-folder.ts'

export const ALLOW_STALE_OPTION = '--allow-stale'

/** `action` is what the command does, for example `start`. */
export function describeAllowStale(action: string): string {
  return `${action} even if a contract was changed after generated/ was written`
}

/** Throws `Refused` if the contract in `root` was changed after generated/ was written. Instead of
 *  a contract, `root` may have an OpenAPI document of another team. */
export async function assertFresh(root: string): Promise<void> {
  if (!hasPlainDocument(root)) {
    const { assertGenerated } = await import('../scripts/model/source-hashes.ts')
    return await assertGenerated(root)
  }
  const [{ assertDocumentGenerated }, { readAnyContract }] = await Promise.all([
    import('../scripts/model/document.ts'),
    import('../scripts/service/read.ts'),
  ])
  await assertDocumentGenerated(root, await readAnyContract(root))
}
