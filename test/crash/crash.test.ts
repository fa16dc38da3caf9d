/** `npm run chaos` for a few seconds: random faults under load, then a comparison of all records
 *  and requests. */
import { randomBytes } from 'node:crypto'
import { expect, inject, test } from 'vitest'
import { type FaultKind, faultKinds } from '../chaos/faults.ts'
import { chaos } from '../chaos/run.ts'

const database = inject('database')
/** Each of them takes longer than all other faults together, and has a test of its own. */
const LONG_FAULTS: FaultKind[] = [
  'worker frozen',
  'PostgreSQL restarted during a start',
  'wrong SECRET_KEY',
  'clock jumped',
]
const NOT_ON_SQLITE: FaultKind[] = ['API node killed', 'PostgreSQL killed', 'connections cut']
/** Needs a user that may mount a file system. */
const OPTIONAL_FAULT: FaultKind = 'disk full'

test('random faults: acknowledged events arrive, and only faults repeat an attempt', async () => {
  const seed = randomBytes(4).toString('hex')
  console.log(`chaos on ${database}, seed ${seed}`)
  const { broken, faults, acknowledged, events, missing, unexplained, deliveries, delivered } =
    await chaos({
      database,
      seed,
      forMs: 8_000,
      restMs: [200, 1_500],
      calmMs: 0,
      without: LONG_FAULTS,
      timeoutMs: 4_000,
      // Other tests keep the machine busy.
      orphanWithinMs: 60_000,
      progress: () => undefined,
    })
  expect(broken).toEqual([])
  expect({ missing, unexplained, delivered }).toEqual({
    missing: 0,
    unexplained: 0,
    delivered: deliveries,
  })
  // A service that acknowledges nothing would pass every other check.
  const faultCount = Object.values(faults).reduce((sum, count) => sum + count, 0)
  expect(acknowledged).toBeGreaterThan(faultCount)
  expect(events).toBeGreaterThanOrEqual(acknowledged)
  const expected = faultKinds.filter(
    (kind) =>
      kind !== OPTIONAL_FAULT &&
      !LONG_FAULTS.includes(kind) &&
      (database === 'postgres' || !NOT_ON_SQLITE.includes(kind)),
  )
  expect(Object.keys(faults)).toEqual(expect.arrayContaining(expected))
}, 240_000)
