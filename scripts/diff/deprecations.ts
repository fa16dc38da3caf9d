import { earliestSunset, readDeprecationMarks } from '../model/deprecations.ts'
import type { Place } from '../model/source.ts'

type DeprecationChange =
  | 'deprecated'
  | 'reactivated'
  | 'sunset-date-changed-too-small'
  | 'sunset-date-too-small'

/** Each change of the deprecation of a part, with the predicate of a sentence about the part. */
export function compareDeprecations(before: Place, after: Place): [DeprecationChange, string][] {
  const [old, now] = [readDeprecationMarks(before), readDeprecationMarks(after)]
  const changes: [DeprecationChange, string][] = []
  const removal = now.sunset === undefined ? '' : `, and can be removed on ${now.sunset}`
  if (!old.isDeprecated && now.isDeprecated) changes.push(['deprecated', `is deprecated${removal}`])
  if (old.isDeprecated && !now.isDeprecated)
    changes.push(['reactivated', 'is no longer deprecated'])
  if (now.sunset === undefined || now.sunset === old.sunset) return changes
  if (old.sunset !== undefined && now.sunset < old.sunset)
    changes.push([
      'sunset-date-changed-too-small',
      `can be removed on ${now.sunset}, before the promised ${old.sunset}`,
    ])
  const isTooEarly = now.since !== undefined && now.sunset < earliestSunset(now.since)
  if (old.sunset === undefined && isTooEarly)
    changes.push([
      'sunset-date-too-small',
      `can be removed on ${now.sunset}, less than a year after its deprecation on ${now.since}`,
    ])
  return changes
}
