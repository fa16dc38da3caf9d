/** The figures that open pages share. */
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { forgetSharedReads, sharedPage, sharedRead } from '../../web/console/shared-reads.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'setTimeout'] }))
afterEach(() => void vi.useRealTimers())

/** Figures whose reads each take `readMs`. The result is the number of the read. */
function newFigures(readMs: number) {
  const id = randomUUID()
  let reads = 0
  const get = (poll: string): Promise<number> => {
    const visit = { account: { id }, ctx: { get: () => poll } } as never
    return sharedRead(visit, 'figures', async () => {
      reads++
      const result = reads
      await new Promise((resolve) => setTimeout(resolve, readMs))
      return result
    })
  }
  const settled = async (result: Promise<number>): Promise<number> => {
    await vi.advanceTimersByTimeAsync(readMs)
    return result
  }
  return { open: () => settled(get('')), reload: () => settled(get('1')) }
}

test('a reload shows nothing older than a page that was opened after the last reload', async () => {
  const { open, reload } = newFigures(100)
  expect(await reload()).toBe(1)
  expect(await reload()).toBe(1)
  expect(await open()).toBe(2)
  expect(await reload()).toBe(2)
  await vi.advanceTimersByTimeAsync(3_000)
  expect(await reload()).toBe(3)
})

test('after a slow read, reloads show new figures within a minute', async () => {
  const { reload } = newFigures(20_000)
  expect(await reload()).toBe(1)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(await reload()).toBe(2)
})

/** Pages that show how often they were rendered. */
function newPages() {
  const id = randomUUID()
  let renderings = 0
  const reload = async (user: object): Promise<unknown> => {
    const ctx = { url: '/console', get: () => '1', cookies: { get: () => undefined } }
    const visit = { account: { id }, user, ctx } as never
    return (await sharedPage(visit, async () => ({ title: '', body: ++renderings }))).body
  }
  return { reload, forget: () => forgetSharedReads(id) }
}

test('reloads within a second show the same page, until a user changes something', async () => {
  const { reload, forget } = newPages()
  const admin = { role: 'admin', grants: [], permissions: {} }
  expect(await reload(admin)).toBe(1)
  await vi.advanceTimersByTimeAsync(900)
  expect(await reload(admin)).toBe(1)
  await vi.advanceTimersByTimeAsync(200)
  expect(await reload(admin)).toBe(2)
  forget()
  expect(await reload(admin)).toBe(3)
})

test('users with other permissions share no page', async () => {
  const { reload } = newPages()
  expect(await reload({ role: 'admin', grants: [], permissions: {} })).toBe(1)
  expect(await reload({ role: 'owner', grants: [], permissions: {} })).toBe(2)
  expect(await reload({ role: 'admin', grants: ['webhooks'], permissions: {} })).toBe(3)
  expect(await reload({ role: 'admin', grants: [], permissions: { jobs: 'none' } })).toBe(4)
})
