/** The known name that differs from `name` in the fewest letters. Undefined without known names. */
export function nearest(name: string, known: string[]): string | undefined {
  const distances = known.map((candidate) => distanceBetween(name, candidate))
  return known[distances.indexOf(Math.min(...distances))]
}

/** The end of a sentence that refuses the name. Empty if no known name is close. */
export function suggest(name: string, known: string[]): string {
  const closest = nearest(name, known)
  const isClose = closest !== undefined && distanceBetween(name, closest) <= name.length / 2
  return isClose ? `: did you mean ${closest}?` : ''
}

/** Levenshtein distance: the fewest letters to insert, delete or replace. */
export function distanceBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1]
    for (const [j, other] of [...b].entries())
      next.push(
        Math.min(
          (row[j] ?? 0) + (letter === other ? 0 : 1),
          (row[j + 1] ?? 0) + 1,
          (next[j] ?? 0) + 1,
        ),
      )
    row = next
  }
  return row.at(-1) ?? 0
}
