/** Reads the contract of any folder. */
import type { Contract } from '../model/contract.ts'
import { readDocument } from '../model/document.ts'
import { isPlain } from '../model/document-folder.ts'
import { readContract } from '../model/yaml.ts'
import { findUnsupported } from './unsupported.ts'

/** A folder without asyncapi.yaml has an OpenAPI document that need not follow our rules. Throws
 *  `UnsupportedDocument` or `ContractError`. */
export function readAnyContract(root: string, readOwn = readContract): Promise<Contract> {
  return isPlain(root) ? readDocument(root, findUnsupported) : readOwn(root)
}
