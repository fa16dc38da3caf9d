/** Which promises an invalid value tests. */
import { expect, it } from 'vitest'
import { listBroken } from '../../scripts/contract/values/broken-keywords.ts'

it('a value of a wrong type breaks the type alone, beside values that break other keywords', () => {
  const schema = { type: 'array', items: { type: 'string', enum: ['EUR'], maxLength: 3 } }
  const named = (...keywords: string[]) => keywords.map((keyword) => ({ name: 'codes.*', keyword }))
  expect(listBroken(schema, [5], 'codes')).toEqual(named('type'))
  expect(listBroken(schema, [5, 'euro'], 'codes')).toEqual(
    expect.arrayContaining(named('type', 'maxLength', 'enum')),
  )
})
