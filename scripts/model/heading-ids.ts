/** The IDs of the headings of a Markdown file. Links end with them: `guide.md#the-heading`. */

/** One ID for each heading, in the same order. A repeated heading gets a number. */
export function headingIds(headings: string[]): string[] {
  const bases = headings.map(slugOf)
  return bases.map((base, index) => {
    const repeats = bases.slice(0, index).filter((earlier) => earlier === base).length
    return repeats === 0 ? base : `${base}--${repeats + 1}`
  })
}

function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
}
