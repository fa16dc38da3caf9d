/** A real browser for tests and pictures: the Chromium that comes as a package, so that `npm ci` is all that it takes. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync } from 'node:zlib'
import { type Browser, chromium, type Page } from 'playwright-core'

const require = createRequire(import.meta.url)
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PACKAGE = dirname(dirname(require.resolve('@sparticuz/chromium')))
/** Not the package's own, which switch off the same-origin policy and with it what is tested here. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]
const TIMEOUT_MS = 60_000

/** The caller closes it. `BROWSER=/usr/bin/chromium` takes another one. */
export async function openBrowser(): Promise<Browser> {
  const own = process.env.BROWSER
  if (own !== undefined)
    return chromium.launch({ executablePath: own, args: FLAGS, timeout: TIMEOUT_MS })
  const home = unpacked()
  return chromium.launch({
    executablePath: join(home, 'chromium'),
    args: FLAGS,
    timeout: TIMEOUT_MS,
    env: {
      ...process.env,
      LD_LIBRARY_PATH: join(home, 'lib'),
      FONTCONFIG_FILE: join(home, 'fonts.conf'),
    },
  })
}

/** The folder of the unpacked browser. It is unpacked once, aside, and moved into place: of several at once one wins. */
function unpacked(): string {
  const { version } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8')) as {
    version: string
  }
  const home = join(ROOT, 'node_modules/.cache', `chromium-${version}`)
  if (existsSync(home)) return home
  const draft = `${home}.${process.pid}`
  mkdirSync(draft, { recursive: true })
  const read = (name: string): Buffer =>
    brotliDecompressSync(readFileSync(join(PACKAGE, 'bin', name)))
  writeFileSync(join(draft, 'chromium'), read('chromium.br'), { mode: 0o755 })
  // What a bare Debian has not: some libraries, and a font, without which no page can be drawn.
  for (const name of ['al2023.tar.br', 'fonts.tar.br', 'swiftshader.tar.br'])
    execFileSync('tar', ['-x', '-C', draft], { input: read(name) })
  writeFileSync(
    join(draft, 'fonts.conf'),
    `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>${join(home, 'fonts')}</dir><cachedir>${join(home, 'font-cache')}</cachedir></fontconfig>`,
  )
  try {
    renameSync(draft, home)
  } catch (error) {
    if (!existsSync(home)) throw error
    rmSync(draft, { recursive: true })
  }
  return home
}

const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')

/** The page is no wider than the screen, and axe finds nothing in it. */
export async function assertReadable(page: Page, what: string): Promise<void> {
  const excess = (await page.evaluate(
    'document.documentElement.scrollWidth - innerWidth',
  )) as number
  assert.ok(excess <= 0, `${what} is ${excess} px wider than the screen`)
  await page.evaluate(axe)
  const { violations } = (await page.evaluate('axe.run()')) as {
    violations: { id: string; nodes: { html: string; failureSummary: string }[] }[]
  }
  const found = violations.map(({ id, nodes }) => ({
    what,
    id,
    nodes: nodes.map(({ failureSummary, html }) => `${html} ${failureSummary}`),
  }))
  assert.deepEqual(found, [])
}
