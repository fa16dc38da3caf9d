/** The languages of the samples. Tests skip those that are not installed, except for
 *  REQUIRED_RUNTIMES. */
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'

interface Language {
  /** As in the tabs of the pages. `client` is TypeScript with the client package. */
  language: string
  /** A command that succeeds only if the runtime is installed. */
  probe: string[]
}

export interface Runtime extends Language {
  /** The file name of a sample. */
  file: string
  /** The command that runs a sample. */
  command(file: string): string[]
}

/** In the order of the tabs of a page. TypeScript runs on the Node of the tests, which strips
 *  types. */
export const RUNTIMES: Runtime[] = [
  {
    language: 'curl',
    file: 'sample.sh',
    command: (file) => ['sh', file],
    probe: ['curl', '--version'],
  },
  {
    language: 'client',
    file: 'client.mts',
    command: (file) => [process.execPath, file],
    probe: [process.execPath, '--version'],
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

const REQUIRED = (process.env.REQUIRED_RUNTIMES ?? '').split(',')

/** The tests of a required language fail if it is not installed. */
export function isSkipped({ language, probe: [command = '', ...args] }: Language): boolean {
  return !REQUIRED.includes(language) && spawnSync(command, args, { stdio: 'ignore' }).status !== 0
}

/** The name of a test: the language, and the reason if it is skipped. */
export function formatTestName(runtime: Language): string {
  return isSkipped(runtime)
    ? `${runtime.language} (skipped: ${runtime.probe[0]} is not installed)`
    : runtime.language
}

/** Runs the command and resolves when it has exited. */
export function run(
  [command = '', ...args]: string[],
  environment: Record<string, string>,
  cwd?: string,
): Promise<{ status: number | null; stdout: string; stderr: string }> {
  return outputOf(spawn(command, args, { cwd, env: { ...process.env, ...environment } }))
}

/** Resolves when the process has exited. */
export function outputOf(
  child: ChildProcessWithoutNullStreams,
): Promise<{ status: number | null; stdout: string; stderr: string }> {
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
