import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from '../repository.ts'

test('docs/architecture.md names only files and folders that exist', async () => {
  const text = await readFile(join(ROOT, 'docs/architecture.md'), 'utf8')
  const names = [...text.matchAll(/`([\w.-]+\/[\w./-]*|[\w.-]+\.(ts|js|md|yaml))`/g)]
  const paths = [...new Set(names.map(([, path = '']) => path))]
  expect(paths.length).toBeGreaterThan(40)
  // Four folders are named below those of webhooks/ and test/.
  const folders = ['', 'webhooks', 'test']
  const isThere = (path: string) => folders.some((folder) => existsSync(join(ROOT, folder, path)))
  expect(paths.filter((path) => !isThere(path))).toEqual([])
})
