/** JSON Merge Patch (RFC 7396). It differs from an update with plain JSON only for fields with an
 *  object: the patch changes single entries of the object. */

/** A body with the media type application/merge-patch+json. */
export type MergePatch = Record<string, unknown>

/** The patch without the nulls inside objects, so that it fits the schemas, which describe stored
 *  objects. Such a null removes an entry of the object. A field that is null itself stays null. */
export function withoutRemovals(patch: MergePatch): MergePatch {
  if (!isObject(patch)) return patch
  return Object.fromEntries(
    Object.entries(patch).map(([field, value]) => [field, applyMergePatch({}, value)]),
  )
}

/** RFC 7396 §2. */
export function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const merged = new Map<string, unknown>(isObject(target) ? Object.entries(target) : [])
  for (const [name, value] of Object.entries(patch))
    if (value === null) merged.delete(name)
    else merged.set(name, applyMergePatch(merged.get(name), value))
  return Object.fromEntries(merged)
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
