/** The parameters of a query whose names have brackets, such as `size[width]`. */
import { describe, expect, it } from 'vitest'
import { readNested } from '../../scripts/service/parameters.ts'

describe('readNested', () => {
  it.each([
    ['a[x]=1&a[y][z]=2', { x: '1', y: { z: '2' } }],
    ['a[]=1&a[]=2', ['1', '2']],
    ['a[1]=second&a[0]=first', ['first', 'second']],
    ['a[0][x]=1&a[0][y]=2', [{ x: '1', y: '2' }]],
    // Not a list: one of the names is no index.
    ['a[k]=1&a[0]=2', { k: '1', 0: '2' }],
    ['a[x]=1&a[x]=2', { x: '2' }],
    ['a=1&b[x]=2&a[x=3', undefined],
  ])('reads %s as %j', (text, value) => {
    expect(readNested(new URLSearchParams(text), 'a')).toEqual(value)
  })

  it('ignores a name of 10,000 levels', () => {
    const deep = `a${'[x]'.repeat(10_000)}=1`
    expect(readNested(new URLSearchParams(deep), 'a')).toBeUndefined()
  })

  it('reads a list of 50,000 items', () => {
    const long = new URLSearchParams('a[]=1&'.repeat(50_000))
    expect(readNested(long, 'a')).toHaveLength(50_000)
  })
})
