/** A machine in a temporary folder, on which a test follows docs/operations.md word by word: the folders /etc, /opt,
 *  /usr and /var of its commands are below that folder, and `sudo`, `systemctl` and `journalctl` are small scripts. */
import { spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { outputOf } from '../docs/runtimes.ts'
import { freePort } from '../postgres.ts'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
const RUNBOOK = join(REPOSITORY, 'docs/operations.md')
const NOT_INSTALLED = ['.ci', '.git', 'client', 'data', 'node_modules', 'test']

interface Block {
  /** The heading above the block. */
  chapter: string
  commands: string
  /** What the runbook says that the commands print. */
  output: string | undefined
}

/** The blocks of shell commands of the runbook, in its order. */
export async function readRunbook(): Promise<Block[]> {
  const text = await readFile(RUNBOOK, 'utf8')
  return text.split(/^##+ (?=\S)/m).flatMap((section) => {
    const [chapter = ''] = section.split('\n', 1)
    const blocks = section.matchAll(/^( *)```sh\n(.*?)^\1```\n(?:\n\1```text\n(.*?)^\1```\n)?/gms)
    return [...blocks].map(([, indent = '', commands = '', output]) => {
      const unindent = (lines: string) => lines.replaceAll(new RegExp(`^${indent}`, 'gm'), '')
      return { chapter, commands: unindent(commands), output: output && unindent(output) }
    })
  })
}

export interface Machine extends AsyncDisposable {
  folder: string
  /** Puts this code into a folder of that version. */
  addVersion(version: string): Promise<void>
  /** Runs the blocks of a chapter that match. Expects that each command succeeds, and prints what the runbook says.
   *  Returns what they print. `replacements` are the words that the reader replaces. */
  follow(chapter: string, pattern?: RegExp, replacements?: Record<string, string>): Promise<string>
  /** Sets variables in /etc/muster.env. */
  configure(settings: Record<string, string | number>): Promise<void>
  url: string
  metricsUrl: string
}

export async function newMachine(): Promise<Machine> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-machine-'))
  const [port, metricsPort] = [await freePort(), await freePort()]
  const programs = join(folder, 'programs')
  await mkdir(programs)
  const scripts = {
    sudo: 'exec env --ignore-environment PATH="$PATH" "$@"',
    systemctl: `exec env MACHINE=${folder} NODE=${process.execPath} ${REPOSITORY}/test/deploy/systemctl.sh "$@"`,
    journalctl: `exec cat ${folder}/$2.log`,
  }
  for (const [name, script] of Object.entries(scripts))
    await writeFile(join(programs, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })

  const onMachine = (text: string, replacements: Record<string, string>): string =>
    Object.entries(replacements)
      .reduce((changed, [word, value]) => changed.replaceAll(word, value), text)
      .replaceAll(/(?<![\w/])\/(?=(etc|opt|var)\/)/g, `${folder}/`)
      .replaceAll('127.0.0.1:3000', `127.0.0.1:${port}`)
      .replaceAll('/deploy/install.sh', `/deploy/install.sh --root ${folder}`)
  const path = [
    programs,
    join(folder, 'usr/local/bin'),
    dirname(process.execPath),
    process.env.PATH,
  ]
  const environment = { PATH: path.join(':') }
  const settingsFile = join(folder, 'etc/muster.env')

  return {
    folder,
    url: `http://127.0.0.1:${port}`,
    metricsUrl: `http://127.0.0.1:${metricsPort}`,
    async addVersion(version) {
      const code = join(folder, 'opt/muster', version)
      await mkdir(code, { recursive: true })
      for (const name of await readdir(REPOSITORY))
        if (!NOT_INSTALLED.includes(name))
          await cp(join(REPOSITORY, name), join(code, name), { recursive: true })
      await symlink(join(REPOSITORY, 'node_modules'), join(code, 'node_modules'))
      const manifest = join(code, 'package.json')
      const text = await readFile(manifest, 'utf8')
      await writeFile(manifest, JSON.stringify({ ...JSON.parse(text), version }))
    },
    async follow(chapter, pattern = /(?:)/, replacements = {}) {
      const blocks = (await readRunbook()).filter(
        ({ chapter: name, commands, output = '' }) =>
          name === chapter && pattern.test(commands + output),
      )
      expect(blocks.length, chapter).toBeGreaterThan(0)
      const printed: string[] = []
      for (const { commands, output } of blocks) {
        const result = await runShell(onMachine(commands, replacements), environment)
        expect(result, commands).toMatchObject({ status: 0 })
        if (output !== undefined)
          expect(result.stdout.trimEnd(), commands).toMatch(
            toPattern(onMachine(output, replacements)),
          )
        printed.push(result.stdout)
      }
      return printed.join('')
    },
    async configure(settings) {
      const text = await readFile(settingsFile, 'utf8')
      const names = Object.keys(settings)
      const others = text.split('\n').filter((line) => !names.includes(line.split('=', 1)[0] ?? ''))
      const lines = Object.entries({ ...settings }).map(([name, value]) => `${name}=${value}\n`)
      await writeFile(settingsFile, others.join('\n') + lines.join(''))
    },
    async [Symbol.asyncDispose]() {
      await runShell(`kill -KILL $(cat ${folder}/muster.pid) || true`, environment)
      await rm(folder, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

/** `…` stands for anything, and for no line at all if it is a line of its own. */
function toPattern(output: string): RegExp {
  const pattern = output
    .trimEnd()
    .replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
    .replaceAll(/^…\n/gm, '(?:[^]*\\n)?')
    .replaceAll('…', '[^]*')
  return new RegExp(`^${pattern}$`)
}

const runShell = (commands: string, env: Record<string, string>) =>
  outputOf(spawn('bash', ['-euo', 'pipefail', '-c', commands], { env }))
