/** Counts refusals that `x-refusals` explains: the schema permits the data, but the service refuses
 *  it. */

export interface Refusal {
  operation: string
  /** The key of `x-refusals`, for example `items.*.name`. */
  field: string
  message: string
  count: number
}

export function describeRefusal({ field, message, count }: Refusal): string {
  const times = count === 1 ? 'once' : `${count} times`
  return `a rule that the schema does not express refused ${field} ${times}: ${message}`
}

export class Refusals {
  readonly #counts = new Map<string, Refusal>()

  add(operation: string, field: string, message: string): void {
    const key = `${operation} ${field} ${message}`
    const refusal = this.#counts.get(key) ?? { operation, field, message, count: 0 }
    this.#counts.set(key, { ...refusal, count: refusal.count + 1 })
  }

  list(): Refusal[] {
    return [...this.#counts.values()]
  }
}
