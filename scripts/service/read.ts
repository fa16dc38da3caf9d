/** Reads the contract of any folder. */
import type { Contract } from '../model/contract.ts'
import { type DocumentCheck, readDocument } from '../model/document.ts'
import { isPlain } from '../model/document-folder.ts'
import type { Source } from '../model/source.ts'
import { readContract } from '../model/yaml.ts'
import { findFaults } from './faults.ts'
import { findMissingParts } from './missing-parts.ts'
import { findOtherVersion, findUnsupported, unique } from './unsupported.ts'

/** Reads our own contract with `readOwnContract`, and another team's OpenAPI document (see
 *  `isPlain`), which need not follow our rules. Throws `UnsupportedDocument` or `ContractError`. */
export function readAnyContract(root: string, readOwnContract = readContract): Promise<Contract> {
  return isPlain(root) ? readDocument(root, checkDocument) : readOwnContract(root)
}

/** Like `readAnyContract`, for the base of a comparison. Its revision may correct its faults. */
export function readAnyBase(root: string, readOwnContract: typeof readContract): Promise<Contract> {
  return isPlain(root)
    ? readDocument(root, (openapi) => ({ refused: findUnsupported(openapi), missing: [] }))
    : readOwnContract(root)
}

function checkDocument(openapi: Source): ReturnType<DocumentCheck> {
  const version = findOtherVersion(openapi)
  if (version.length > 0) return { refused: version, missing: [] }
  return {
    refused: unique([...findUnsupported(openapi), ...findFaults(openapi)]),
    missing: findMissingParts(openapi),
  }
}
