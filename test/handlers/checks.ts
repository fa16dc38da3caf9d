/** What holds of every record that can be changed: checks for its own tests. */
import { expect } from 'vitest'
import type { Answer, Client } from '../helpers.ts'
import type { Body } from './new-records.ts'

/** The status, and the fields at fault. */
export function faults({ status, body }: Answer): [number, string[]] {
  return [status, Object.keys(body?.errors ?? {})]
}

/** Updates a record: the given fields are as given, the others as they were, the version a later one, and a GET says the same. */
export async function expectUpdate(
  client: Client,
  path: string,
  given: object,
  wanted: object = given,
): Promise<Body> {
  const before = (await client.get(path)).body
  const answer = await client.patch(path, given)
  expect(answer).toMatchObject({ status: 200 })
  expect(answer.body).toEqual({ ...before, ...wanted, updated_at: expect.any(String) })
  expect(Date.parse(answer.body.updated_at)).toBeGreaterThan(Date.parse(before.updated_at))
  await expectRead(client, path, answer)
  return answer.body
}

/** A GET answers with the same representation and version as the write. */
export async function expectRead(client: Client, path: string, written: Answer): Promise<void> {
  const read = await client.get(path)
  expect([read.status, read.text, read.headers.get('etag')]).toEqual([
    200,
    written.text,
    written.headers.get('etag'),
  ])
}

/** Tries a move: done, or refused on `status` without a trace. */
export async function expectMove(
  client: Client,
  path: string,
  from: string,
  to: string,
  isPossible: boolean,
): Promise<Body> {
  const before = (await client.get(path)).body
  expect(before.status).toBe(from)
  const answer = await client.patch(path, { status: to })
  if (isPossible) expect([answer.status, answer.body.status]).toEqual([200, to])
  else expect(faults(answer)).toEqual([422, ['status']])
  const after = (await client.get(path)).body
  if (!isPossible || from === to) expect(after).toEqual(before)
  return after
}

/** Every pair of states, with whether the first can become the second. A record that stays what it is is no move. */
export function pairsOf(
  moves: Record<string, string[]>,
): { from: string; to: string; isPossible: boolean }[] {
  const states = Object.keys(moves)
  return states.flatMap((from) =>
    states.map((to) => ({ from, to, isPossible: from === to || (moves[from] ?? []).includes(to) })),
  )
}
