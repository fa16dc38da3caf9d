/** Renames an operation: replaces its ID in all files, except in the changelog and in the files in
 *  which the ID belongs to an example (`splitMadeUp`). */
import { Refused } from '../../errors.ts'
import type { Contract } from '../model/contract.ts'
import { suggest } from '../model/nearest.ts'
import { describeMadeUp, splitMadeUp } from './made-up.ts'
import { type Changes, findMentions, HISTORY, type TextFile, wordPattern } from './text-files.ts'

/** Throws `Refused` for an unknown name, and for a new name that is taken or is not written like
 *  `listParticipants`. */
export function renameOperation(
  contract: Contract,
  files: TextFile[],
  name: string,
  newName: string,
): Changes {
  assertOperationIds(contract, name, newName)
  if (!/^[a-z]+[A-Z][A-Za-z0-9]*$/.test(newName))
    throw new Refused(`${newName} is not a verb and a noun: write it like listParticipants`)
  const { madeUp, others } = splitMadeUp(files, `operationId: ${name}`)
  const affected = others.filter(({ text }) => wordPattern(name).test(text))
  assertUndeclared(affected, newName)
  const renamed = affected.filter(({ file }) => file !== HISTORY)
  return {
    texts: new Map(
      renamed.map(({ file, text }) => [file, text.replace(wordPattern(name), newName)]),
    ),
    moves: movesOf(files, name, newName),
    left: [
      ...affected
        .filter(({ file }) => file === HISTORY)
        .flatMap((file) => findMentions(file, name))
        .map((place) => `${place} describe earlier versions: change only the unreleased version`),
      ...describeMadeUp(madeUp, name),
    ],
    madeUp: madeUp.map(({ file }) => file),
  }
}

export function assertOperationIds(
  { openapi, operations }: Contract,
  name: string,
  newName: string,
): void {
  const ids = operations.map(({ id }) => id)
  if (!ids.includes(name))
    throw new Refused(
      `${openapi.file} has no operation ${name}${suggest(name, ids) || '.'} Write Schema.field for a field.`,
    )
  if (ids.includes(newName))
    throw new Refused(`${openapi.file} has ${newName} already: choose another name`)
}

/** The new path of each file that is named after the operation. Throws `Refused` if a file with a
 *  new path exists. */
export function movesOf(files: TextFile[], name: string, newName: string): Map<string, string> {
  const moves = files.flatMap(({ file }): [string, string][] => {
    const moved = file.replace(new RegExp(`/${name}(?=(\\.test)?\\.ts$)`), `/${newName}`)
    return moved === file ? [] : [[file, moved]]
  })
  const conflict = moves.find(([, moved]) => files.some(({ file }) => file === moved))
  if (conflict) throw new Refused(`${conflict[1]} exists: move it away, or choose another name`)
  return new Map(moves)
}

/** Throws `Refused` if code in one of the files declares or imports the new name. */
export function assertUndeclared(files: TextFile[], newName: string): void {
  const taken = files.find(({ text }) => declares(text, newName))
  if (taken)
    throw new Refused(
      `${findMentions(taken, newName)[0]} uses ${newName} for something else: choose another name`,
    )
}

function declares(text: string, name: string): boolean {
  const declaration = '(function|const|let|class|type|interface)\\s+'
  const list = 'import (type )?\\{[^}]*\\b'
  return new RegExp(`\\b(${declaration}|${list})${name}\\b`).test(text)
}
