/** Filters of a list with values that tell whether the list applies them. */
import { applyFilter } from '../../words/list-model.ts'
import { type FilterParameter, listFilters } from '../../words/lists.ts'
import { chooseFilterValues } from './list-filter-values.ts'
import type { ListUnderTest } from './list-under-test.ts'

/** A filter with values. */
export class Filtering {
  readonly filter: FilterParameter
  readonly values: string[]
  readonly #modelValues: string[]

  constructor(filter: FilterParameter, values: string[], isUuid: boolean) {
    this.filter = filter
    this.values = values
    // RFC 9562 §4: UUIDs are case-insensitive as input.
    this.#modelValues = isUuid ? values.map((value) => value.toLowerCase()) : values
  }

  get query(): Record<string, unknown> {
    const { name, schema } = this.filter.parameter
    return { [name]: schema.value.type === 'array' ? this.values : this.values[0] }
  }

  apply(records: unknown[]): unknown[] {
    return applyFilter(records, this.filter, this.#modelValues)
  }
}

/** Each filter of the list with several values, one after the other. `earlier` are records before
 *  their updates. */
export function chooseFilterings(
  list: ListUnderTest,
  records: unknown[],
  earlier: unknown[],
): Filtering[] {
  return listFilters(list.operation).flatMap((filter) => {
    const schema = list.schemaOf(filter.parameter.name) ?? {}
    return chooseFilterValues(filter, schema, records, earlier).map(
      (values) => new Filtering(filter, values, schema.format === 'uuid'),
    )
  })
}

/** Filters that match the same record, as many as possible, and the same filters with values that
 *  do not match it. */
export function chooseTogether(
  records: unknown[],
  tried: Filtering[],
): { matching: Filtering[]; other: Filtering[] } {
  const byFilter = [...Map.groupBy(tried, ({ filter }) => filter).values()]
  const choose = (record: unknown, matches: boolean): Filtering[] =>
    byFilter.flatMap((some) => some.find((one) => one.apply([record]).length > 0 === matches) ?? [])
  const chosen = records.map((record) => ({
    matching: choose(record, true),
    other: choose(record, false),
  }))
  return (
    chosen.toSorted((a, b) => b.matching.length - a.matching.length)[0] ?? {
      matching: [],
      other: [],
    }
  )
}
