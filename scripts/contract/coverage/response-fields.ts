/** Whether the body has a value that fits in the field, for example in `data.*.note`: `*` stands for
 *  the entries of a list or map. Empty: the whole body. */
export function hasField(body: unknown, field: string, fits: (value: unknown) => boolean): boolean {
  return field === '' ? fits(body) : hasAt(body, field.split('.'), fits)
}

function hasAt(
  value: unknown,
  [name, ...rest]: string[],
  fits: (value: unknown) => boolean,
): boolean {
  if (name === undefined) return fits(value)
  if (typeof value !== 'object' || value === null) return false
  if (name === '*') return Object.values(value).some((entry) => hasAt(entry, rest, fits))
  return Object.hasOwn(value, name) && hasAt(value[name as keyof typeof value], rest, fits)
}
