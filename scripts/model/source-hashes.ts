/** generated/sources.json: the hashes of the contracts that generated/ was written from. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Refused } from '../../errors.ts'
import type { Contract } from './contract.ts'

export function renderHashes({ openapi, asyncapi }: Contract): string {
  const hashes = [openapi, asyncapi].map(({ file, text }) => [file, hash(text)])
  return `${JSON.stringify(Object.fromEntries(hashes), null, 2)}\n`
}

/** Whether generated/ in `root` was written from this contract. If so, the generator has accepted
 *  the contract. */
export async function isGenerated(root: string, contract: Contract): Promise<boolean> {
  const text = await readFile(join(root, 'generated/sources.json'), 'utf8').catch(() => undefined)
  return text === renderHashes(contract)
}

/** Throws `Refused` if a contract in `root` was changed after generated/ was written. */
export async function assertGenerated(root: string): Promise<void> {
  const hashes = JSON.parse(await readFile(join(root, 'generated/sources.json'), 'utf8')) as Record<
    string,
    string
  >
  for (const [file, expected] of Object.entries(hashes))
    if (hash(await readFile(join(root, file), 'utf8')) !== expected)
      throw new Refused(
        `${file} was changed after generated/ was written. Run "npx muster generate" first.`,
      )
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
