/** Reads the contract of any folder. */
import type { Contract } from '../model/contract.ts'
import { type DocumentCheck, readDocument } from '../model/document.ts'
import { hasPlainDocument } from '../model/document-folder.ts'
import type { Source } from '../model/source.ts'
import { readContract } from '../model/yaml.ts'
import { findFaults } from './faults.ts'
import { findMissingParts } from './missing-parts.ts'
import { findUnsupported, findVersionProblem, unique } from './unsupported.ts'

/** Reads our contract, or the OpenAPI document of another team (see `hasPlainDocument`), which need
 *  not follow our rules. Throws `UnsupportedDocument` or `ContractError`. */
export function readAnyContract(root: string, readOwnContract = readContract): Promise<Contract> {
  return hasPlainDocument(root) ? readDocument(root, checkDocument) : readOwnContract(root)
}

/** Like `readAnyContract`, for the base of `muster diff`: the older of the two contracts. Accepts
 *  the faults of another team's document, because the newer one may correct them. */
export function readAnyBase(root: string, readOwnContract: typeof readContract): Promise<Contract> {
  return hasPlainDocument(root)
    ? readDocument(root, (openapi) => ({ refused: findUnsupported(openapi), missing: [] }))
    : readOwnContract(root)
}

function checkDocument(openapi: Source): ReturnType<DocumentCheck> {
  const version = findVersionProblem(openapi)
  if (version.length > 0) return { refused: version, missing: [] }
  return {
    refused: unique([...findUnsupported(openapi), ...findFaults(openapi)]),
    missing: findMissingParts(openapi),
  }
}
