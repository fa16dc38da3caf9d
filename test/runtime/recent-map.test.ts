import { expect, test } from 'vitest'
import { RecentMap } from '../../runtime/recent-map.ts'

test('forgets the entry that was not used for the longest time', () => {
  const map = new RecentMap<string, number>(2)
  map.set('a', 1)
  map.set('b', 2)
  map.get('a')
  map.set('c', 3)
  expect(['a', 'b', 'c'].map((key) => map.get(key))).toEqual([1, undefined, 3])
  map.set('a', 4)
  expect(['a', 'c'].map((key) => map.get(key))).toEqual([4, 3])
})
