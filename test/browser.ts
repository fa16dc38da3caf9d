/** The browser for tests and screenshots: Chromium from an npm package on Linux with an x64
 *  processor, elsewhere an installed Chrome or Chromium. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync } from 'node:zlib'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'

const require = createRequire(import.meta.url)
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PACKAGE = dirname(dirname(require.resolve('@sparticuz/chromium')))
/** Not the flags of the package: these disable the same-origin policy, and tests rely on it. */
const FLAGS = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
]
const LAUNCH_TIMEOUT_MS = 60_000
const INSTALLED = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
  ...(process.env.PATH ?? '')
    .split(delimiter)
    .flatMap((folder) =>
      ['google-chrome', 'chromium', 'chromium-browser'].map((name) => join(folder, name)),
    ),
]
const isInPackage = process.platform === 'linux' && process.arch === 'x64'
const program = process.env.BROWSER ?? (isInPackage ? undefined : INSTALLED.find(existsSync))

/** What to do when `hasBrowser` is false. */
export const NO_BROWSER =
  'No Chrome or Chromium was found. Install one, or set BROWSER to the path of its program.'
export const hasBrowser = isInPackage || program !== undefined

/** Launches the browser, which the caller must close. `BROWSER=/usr/bin/chromium` selects another
 *  one. */
export async function openBrowser(): Promise<Browser> {
  assert(hasBrowser, NO_BROWSER)
  if (program !== undefined)
    return chromium.launch({ executablePath: program, args: FLAGS, timeout: LAUNCH_TIMEOUT_MS })
  const home = unpackBrowser()
  return chromium.launch({
    executablePath: join(home, 'chromium'),
    args: FLAGS,
    timeout: LAUNCH_TIMEOUT_MS,
    env: {
      ...process.env,
      LD_LIBRARY_PATH: join(home, 'lib'),
      FONTCONFIG_FILE: join(home, 'fonts.conf'),
    },
  })
}

/** Unpacks the browser once and returns its folder. Concurrent processes may call this, because the
 *  rename is atomic. */
function unpackBrowser(): string {
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
  // Libraries and a font that a minimal Debian lacks.
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

const axeScript = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')

/** Without the details of the rules that are met, which take half the time. */
const RUN_AXE = `axe.run({ resultTypes: ['violations'] })`

/** Loads axe with every page of the context, which `assertReadable` needs. The browser compiles it
 *  only once. */
export function loadAxe(context: BrowserContext): Promise<unknown> {
  return context.addInitScript(axeScript)
}

/** Throws when the page is wider than the screen. */
export async function assertFits(page: Page, name: string): Promise<void> {
  const excess = (await page.evaluate(
    'document.documentElement.scrollWidth - innerWidth',
  )) as number
  assert.ok(excess <= 0, `${name} is ${excess} px wider than the screen`)
}

/** Throws when the page is wider than the screen or axe finds a fault. */
export async function assertReadable(page: Page, name: string): Promise<void> {
  await assertFits(page, name)
  const { violations } = (await page.evaluate(RUN_AXE)) as {
    violations: { id: string; nodes: { html: string; failureSummary: string }[] }[]
  }
  const faults = violations.map(({ id, nodes }) => ({
    name,
    id,
    nodes: nodes.map(({ failureSummary, html }) => `${html} ${failureSummary}`),
  }))
  assert.deepEqual(faults, [])
}
