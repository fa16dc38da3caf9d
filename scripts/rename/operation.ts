/** Renames an operation: its ID is one word that means the same in every file. */
import { Refused } from '../../errors.ts'
import type { Contract } from '../model/contract.ts'
import { nearest } from '../model/nearest.ts'
import { type Changes, findMentions, HISTORY, type TextFile, wordPattern } from './text-files.ts'

/** Throws `Refused` for an unknown name, and for a new one that is taken. */
export function renameOperation(
  { operations }: Contract,
  files: TextFile[],
  name: string,
  newName: string,
): Changes {
  const ids = operations.map(({ id }) => id)
  if (!ids.includes(name))
    throw new Refused(
      `openapi.yaml has no operation ${name}: did you mean ${nearest(name, ids)}? Write Schema.field for a field.`,
    )
  if (!/^[a-z]+[A-Z][A-Za-z0-9]*$/.test(newName))
    throw new Refused(`${newName} is not a verb and a noun: write it like listParticipants`)
  if (ids.includes(newName))
    throw new Refused(`openapi.yaml has ${newName} already: choose another name`)
  const mentions = (file: TextFile, word: string): boolean => wordPattern(word).test(file.text)
  const affected = files.filter((file) => mentions(file, name))
  const taken = affected.find(({ text }) => declares(text, newName))
  if (taken)
    throw new Refused(
      `${findMentions(taken, newName)[0]} uses ${newName} for something else: choose another name`,
    )
  const moves = files.flatMap(({ file }): [string, string][] => {
    const moved = file.replace(new RegExp(`/${name}(?=(\\.test)?\\.ts$)`), `/${newName}`)
    return moved === file ? [] : [[file, moved]]
  })
  const present = moves.find(([, moved]) => files.some(({ file }) => file === moved))
  if (present) throw new Refused(`${present[1]} exists: move it away, or choose another name`)
  return {
    texts: new Map(
      affected
        .filter(({ file }) => file !== HISTORY)
        .map(({ file, text }) => [file, text.replace(wordPattern(name), newName)]),
    ),
    moves: new Map(moves),
    left: affected
      .filter(({ file }) => file === HISTORY)
      .flatMap((file) => findMentions(file, name))
      .map((place) => `${place} describe earlier versions: change only the version in work`),
  }
}

/** Whether code declares or imports the name. */
function declares(text: string, name: string): boolean {
  const declaration = '(function|const|let|class|type|interface)\\s+'
  const list = 'import (type )?\\{[^}]*\\b'
  return new RegExp(`\\b(${declaration}|${list})${name}\\b`).test(text)
}
