import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** `plain` runs once, on SQLite. `onBoth` runs twice: on SQLite and on PostgreSQL, with many files in
 *  one process, because loading the service takes longer than most tests. */
const plain = [
  'test/specification.test.ts',
  'test/{auth,cli,client,deploy,docs,runtime,scripts,server}/**/*.test.ts',
]
const onBoth = ['test/{console,handlers,records,webhooks,contract,crash,upgrade}/**/*.test.ts']
/** Files of a minute or more. They begin first, so that no worker waits for one of them at the end.
 *  Vitest knows the durations of earlier runs only, and a clean checkout has none. */
const longest = [
  'test/contract/contract.test.ts',
  'test/contract/commands.test.ts',
  'test/contract/dredd.test.ts',
  'test/contract/contract-faults.test.ts',
  'test/docs/samples.test.ts',
  'test/scripts/stubs.test.ts',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) =>
      longest.some((path) => moduleId.endsWith(path))
    const byProject = Map.groupBy(await super.sort(files), ({ project }) => project.name)
    return [...byProject.values()].flatMap((own) => own.toSorted((a, b) => +isLong(b) - +isLong(a)))
  }
}

// The timeouts are long, because machines also run other work. They only end a test that hangs:
// tests wait for conditions.
const shared = {
  testTimeout: 60_000,
  hookTimeout: 90_000,
  globalSetup: ['test/postgres.ts'],
}

export default defineConfig({
  test: {
    // More workers than most machines of a CI have cores: tests also wait for time to pass.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          ...shared,
          name: 'plain',
          include: plain,
          globalSetup: [],
          provide: { database: 'sqlite' },
        },
      },
      {
        test: {
          ...shared,
          name: 'sqlite',
          include: onBoth,
          isolate: false,
          globalSetup: [],
          provide: { database: 'sqlite' },
        },
      },
      {
        test: {
          ...shared,
          name: 'postgres',
          include: onBoth,
          isolate: false,
          setupFiles: ['test/statements.ts'],
          provide: { database: 'postgres' },
        },
      },
    ],
  },
})
