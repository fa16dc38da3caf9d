/** Compares two revisions of the contract. */
import type { Change, Editions } from './change.ts'
import { compareEvents } from './events.ts'
import { compareOperations } from './operations.ts'
import { LEVELS } from './rules.ts'

/** All changes, breaking ones first. A change of a shared component is listed once. */
export function compareContracts(editions: Editions): Change[] {
  const changes = [...compareOperations(editions), ...compareEvents(editions)]
  const merged = new Map<string, Change>()
  for (const change of changes) {
    const key = `${change.id} ${change.file}:${change.line} ${change.isGone} ${change.what}`
    const known = merged.get(key)
    if (known) known.concerns = [...new Set([...known.concerns, ...change.concerns])]
    else merged.set(key, { ...change })
  }
  return [...merged.values()].sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level))
}
