/** Reads the contract of any folder. */
import type { Contract } from '../model/contract.ts'
import { readDocument } from '../model/document.ts'
import { isPlain } from '../model/document-folder.ts'
import { readContract } from '../model/yaml.ts'
import { findUnsupported } from './unsupported.ts'

/** Reads our own contract with `readOwnContract`, and another team's OpenAPI document (see
 *  `isPlain`), which need not follow our rules. Throws `UnsupportedDocument` or `ContractError`. */
export function readAnyContract(root: string, readOwnContract = readContract): Promise<Contract> {
  return isPlain(root) ? readDocument(root, findUnsupported) : readOwnContract(root)
}
