/** `x-batch` of an operation of openapi.yaml: the operation creates and updates several records. */
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { readWord } from './read.ts'

interface BatchWords {
  /** The ID of the operation that creates one record. */
  create: string
  /** The ID of the operation that updates one record. */
  update: string
  /** The field that names the record of an upsert. */
  key: string
  /** The most bytes of the body. A longer one gets 413. */
  max_body_bytes: number
}

/** An operation that creates and updates several records. */
export interface Batch {
  operation: Operation
  create: Operation
  update: Operation
  key: string
}

/** Undefined if the operation is no batch. */
export function readBatchWords({ place }: Operation): BatchWords | undefined {
  return readWord(place, 'x-batch')
}

/** Undefined if the operation is no batch, or if an operation that it names does not exist. */
export function findBatch({ operations }: Contract, operation: Operation): Batch | undefined {
  const words = readBatchWords(operation)
  const find = (id: string | undefined) => operations.find((one) => one.id === id)
  const [create, update] = [find(words?.create), find(words?.update)]
  return words && create && update && { operation, create, update, key: words.key }
}
