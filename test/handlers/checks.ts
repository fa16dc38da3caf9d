/** Checks for tests of records that can be updated. */
import { expect } from 'vitest'
import type { Answer, Client } from '../helpers.ts'
import type { Body } from './new-records.ts'

/** The status of a response, and the fields that its errors name. */
export function statusAndFields({ status, body }: Answer): [number, string[]] {
  return [status, Object.keys(body?.errors ?? {})]
}

/** Updates a record with `body`. Expects that only the fields of `expected` and the version change,
 *  and that a GET returns the same. Returns the updated record. */
export async function expectUpdate(
  client: Client,
  path: string,
  body: object,
  expected: object = body,
): Promise<Body> {
  const before = (await client.get(path)).body
  const answer = await client.patch(path, body)
  expect(answer).toMatchObject({ status: 200 })
  expect(answer.body).toEqual({ ...before, ...expected, updated_at: expect.any(String) })
  expect(Date.parse(answer.body.updated_at)).toBeGreaterThan(Date.parse(before.updated_at))
  await expectRead(client, path, answer)
  return answer.body
}

/** Expects that a GET returns the same body and version as the write. */
export async function expectRead(client: Client, path: string, written: Answer): Promise<void> {
  const read = await client.get(path)
  expect([read.status, read.text, read.headers.get('etag')]).toEqual([
    200,
    written.text,
    written.headers.get('etag'),
  ])
}

interface Move {
  from: string
  to: string
  isPossible: boolean
}

/** Updates the status. Expects 422 on `status` and no change for an impossible move. Returns the
 *  record after it. */
export async function expectMove(
  client: Client,
  path: string,
  { from, to, isPossible }: Move,
): Promise<Body> {
  const before = (await client.get(path)).body
  expect(before.status).toBe(from)
  const answer = await client.patch(path, { status: to })
  if (isPossible) expect([answer.status, answer.body.status]).toEqual([200, to])
  else expect(statusAndFields(answer)).toEqual([422, ['status']])
  const after = (await client.get(path)).body
  if (!isPossible || from === to) expect(after).toEqual(before)
  return after
}

/** Every pair of states, and whether the first can become the second. A state can become itself. */
export function pairsOf(moves: Record<string, string[]>): Move[] {
  const states = Object.keys(moves)
  return states.flatMap((from) =>
    states.map((to) => ({ from, to, isPossible: from === to || (moves[from] ?? []).includes(to) })),
  )
}
