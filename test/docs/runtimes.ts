/** The languages of the documentation's code, as far as they are on this machine. */
import { spawn, spawnSync } from 'node:child_process'

export interface Runtime {
  language: string
  /** The name of the file that holds a sample. */
  file: string
  /** What runs it. */
  command(file: string): string[]
  /** Something that only works where the runtime is there. */
  probe: string[]
}

/** Its own Node for TypeScript: the one that runs the tests takes types as they are. */
export const RUNTIMES: Runtime[] = [
  {
    language: 'curl',
    file: 'sample.sh',
    command: (file) => ['sh', file],
    probe: ['curl', '--version'],
  },
  {
    language: 'typescript',
    file: 'sample.mts',
    command: (file) => [process.execPath, file],
    probe: [process.execPath, '--version'],
  },
  {
    language: 'python',
    file: 'sample.py',
    command: (file) => ['python3', file],
    probe: ['python3', '--version'],
  },
  {
    language: 'php',
    file: 'sample.php',
    command: (file) => ['php', file],
    probe: ['php', '-r', 'exit(extension_loaded("curl") ? 0 : 1);'],
  },
  {
    language: 'go',
    file: 'sample.go',
    command: (file) => ['go', 'run', file],
    probe: ['go', 'version'],
  },
  {
    language: 'ruby',
    file: 'sample.rb',
    command: (file) => ['ruby', file],
    probe: ['ruby', '--version'],
  },
]

export function isThere({ probe: [command = '', ...args] }: { probe: string[] }): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0
}

/** For the names of tests that are skipped. */
export function unlessThere(runtime: { language: string; probe: string[] }): string {
  return isThere(runtime)
    ? runtime.language
    : `${runtime.language} (skipped: ${runtime.probe[0]} is not on this machine)`
}

/** Runs it to its end. */
export function run(
  [command = '', ...args]: string[],
  environment: Record<string, string>,
): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const child = spawn(command, args, { env: { ...process.env, ...environment } })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output.stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    output.stderr += text
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (status) => resolve({ status, ...output }))
  })
}
