import { describe, expect, test } from 'vitest'
import { coalesce } from '../../runtime/coalesce.ts'

describe('coalesce', () => {
  test('calls during a run share the next run, never the current one', async () => {
    const runs: { calls: number; end: (value: string) => void }[] = []
    const call = coalesce(
      (_, calls) => new Promise<string>((resolve) => runs.push({ calls, end: resolve })),
    )
    const first = call('a')
    const others = [call('a'), call('a'), call('a')]
    const ofAnotherKey = call('b')
    expect(runs.map(({ calls }) => calls)).toEqual([1, 1])
    runs[0]?.end('one')
    expect(await first).toEqual({ result: 'one', calls: 1, index: 0 })
    expect(runs.map(({ calls }) => calls)).toEqual([1, 1, 3])
    const later = call('a')
    runs[2]?.end('two')
    expect(await Promise.all(others)).toEqual(
      [0, 1, 2].map((index) => ({ result: 'two', calls: 3, index })),
    )
    runs[3]?.end('three')
    expect(await later).toEqual({ result: 'three', calls: 1, index: 0 })
    runs[1]?.end('b')
    expect((await ofAnotherKey).result).toBe('b')
  })

  test('an error rejects only the calls of its run', async () => {
    let runs = 0
    const call = coalesce(async () => {
      if (runs++ === 0) throw new Error('once')
      return runs
    })
    const [first, second] = [call('a'), call('a')]
    await expect(first).rejects.toThrow('once')
    expect((await second).result).toBe(2)
  })

  test('a call soon after a run joins those that waited for its end', async () => {
    const call = coalesce(async (_, calls) => calls, 20)
    const [first, second] = [call('a'), call('a')]
    expect((await first).result).toBe(1)
    const third = call('a')
    expect(await second).toEqual({ result: 2, calls: 2, index: 0 })
    expect(await third).toEqual({ result: 2, calls: 2, index: 1 })
  })
})
